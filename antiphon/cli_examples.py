"""The examples of every command's `--help`: what to type, and what for. Tests read each of them as
the command itself would."""

Example = tuple[str, str]
"""A line for a shell, and its purpose."""

EXAMPLES: dict[str, tuple[Example, ...]] = {
    "": (
        ("antiphon serve", "start a server with the default model"),
        ("antiphon chat", "chat with it, in another terminal"),
        ("antiphon check", "see what this machine has, and what is missing"),
    ),
    "serve": (
        ("antiphon serve", "serve the default model at http://127.0.0.1:8000"),
        ("antiphon serve --config antiphon.toml", "with settings from a file"),
        ("ANTIPHON_ENGINE_SLOTS=8 antiphon serve", "with one setting from a variable"),
    ),
    "chat": (
        ("antiphon chat", "chat with the server on this machine"),
        ("antiphon chat --continue", "go on where the last conversation ended"),
        ('antiphon chat "What is the capital of France?"', "ask one thing, and end"),
        ("antiphon chat --file notes.txt Summarise this.", "ask about a file"),
        ("git diff | antiphon chat --plain Explain this:", "ask about what a program says"),
        (
            "ANTIPHON_API_KEY=sk-antiphon-… antiphon chat --url https://chat.example.org",
            "chat with a server elsewhere",
        ),
    ),
    "top": (
        ("antiphon top", "watch the server on this machine"),
        ("antiphon top --once", "print how it stands now, as for a report"),
        ("antiphon top --ops 10.0.0.7:8001 --every 5", "another one, every five seconds"),
    ),
    "reload": (("antiphon reload", "after a change of the settings' file"),),
    "check": (
        ("antiphon check", "before the first start"),
        ("antiphon check --config antiphon.toml", "whether these settings can work here"),
    ),
    "models": (
        ("antiphon models list", "what is prepared, and what is known by name"),
        ("antiphon models pull", "fetch and prepare what `serve` would serve"),
    ),
    "models pull": (
        ("antiphon models pull", "what the settings name, before the first start"),
        ("antiphon models pull smollm2-135m-instruct", "a model that is known by name"),
        ("antiphon models pull ./checkpoint", "a folder with a Hugging Face checkpoint"),
    ),
    "models list": (("antiphon models list", "what can be served without a download"),),
    "keys": (
        ("antiphon keys create --user alice", "make a key; the secret is shown once"),
        ("antiphon keys list", "see all keys"),
    ),
    "keys create": (
        ("antiphon keys create --user alice --name laptop", "for a person's program"),
        ("antiphon keys create --user ops --scope operator --expires 30d", "for an operator"),
        ("antiphon keys create --user bob > bob.key", "into a file: only the secret goes there"),
    ),
    "keys list": (("antiphon keys list", "see ids, prefixes, users and scopes"),),
    "keys revoke": (("antiphon keys revoke sk-antiphon-AbC123", "a key that was lost"),),
    "keys suspend": (
        ('antiphon keys suspend sk-antiphon-AbC123 --reason "leaked"', "until it is replaced"),
    ),
    "keys resume": (("antiphon keys resume sk-antiphon-AbC123", "serve it again"),),
    "users": (
        ("antiphon users list", "who there is"),
        ("antiphon users set-plan alice paid", "give somebody a plan of the settings"),
    ),
    "users list": (("antiphon users list", "see users with tenants and plans"),),
    "users set-plan": (
        ("antiphon users set-plan alice paid", "a plan that `[plans.paid]` defines"),
        ("antiphon users set-plan alice --default", "whatever the default plan is"),
    ),
    "users suspend": (('antiphon users suspend alice --reason "unpaid bill"', "for now"),),
    "users resume": (("antiphon users resume alice", "serve them again"),),
    "users export": (("antiphon users export alice > alice.json", "whoever asks for their data"),),
    "users erase": (
        ("antiphon users erase alice", "whoever wants to be forgotten; it asks first"),
        ("antiphon users erase alice --yes > receipt.json", "in a script, and keep the receipt"),
    ),
    "users training": (("antiphon users training alice off", "never for training"),),
    "usage": (("antiphon usage export --by day", "sums for a bill"),),
    "usage export": (
        (
            "antiphon usage export --since 2026-01-01 --until 2026-02-01 --by day > january.csv",
            "a month, by user, day and model",
        ),
        ("antiphon usage export --format jsonl", "each turn, for a program"),
    ),
    "db": (
        ("antiphon db status", "which database it is"),
        ("antiphon db export backup.jsonl", "back it up"),
    ),
    "db status": (("antiphon db status", "after an upgrade"),),
    "db migrate": (("antiphon db migrate", "before the first server of a new version starts"),),
    "db check": (("antiphon db check", "after a crash of the machine, or a full disk"),),
    "db export": (
        ("antiphon db export backup.jsonl", "a backup, or a move to another database"),
        ("antiphon db export --training chats.jsonl", "what users allow to be learnt from"),
    ),
    "db import": (
        (
            "ANTIPHON_DATABASE_URL=postgresql://antiphon@db/antiphon "
            "antiphon db import backup.jsonl",
            "move to PostgreSQL",
        ),
    ),
    "policy": (
        ("antiphon policy show > rules.toml", "begin with the rules in force"),
        ("antiphon policy check rules.toml", "see whether a file can be used"),
    ),
    "policy check": (("antiphon policy check rules.toml", "before the server reads it"),),
    "policy show": (("antiphon policy show > rules.toml", "a file to change and to use"),),
    "policy test": (
        ('antiphon policy test "call me at +49 30 1234567"', "what becomes of one text"),
        ("antiphon policy test --rules rules.toml --stage output < answer.txt", "with new rules"),
    ),
    "policy eval": (
        ("antiphon policy eval --text prompt --label category set.csv", "measure the rules"),
    ),
    "abuse": (
        ("antiphon abuse list", "who is under suspicion"),
        ("antiphon abuse explain user_1f0c", "why"),
    ),
    "abuse list": (("antiphon abuse list", "the highest scores first"),),
    "abuse explain": (("antiphon abuse explain 203.0.113.7", "what was counted, and when"),),
    "abuse forgive": (("antiphon abuse forgive user_1f0c", "serve somebody again, at once"),),
    "abuse pardon": (("antiphon abuse pardon user_1f0c --hours 24", "during a test of theirs"),),
    "prompts": (
        ("antiphon prompts add guide guide.txt", "keep a text as the next version"),
        ("antiphon prompts activate guide 2", "put it in force"),
    ),
    "prompts add": (
        ('antiphon prompts add guide guide.txt --note "shorter"', "from a file"),
        ("echo 'Answer in German.' | antiphon prompts add german -", "from another program"),
    ),
    "prompts list": (
        ("antiphon prompts list", "what is in force"),
        ("antiphon prompts list guide", "every version of one"),
    ),
    "prompts show": (
        ("antiphon prompts show guide", "the newest version"),
        ("antiphon prompts show guide 1 > old.txt", "an older one"),
    ),
    "prompts activate": (
        ("antiphon prompts activate guide 2", "for everybody"),
        ("antiphon prompts activate guide 2 --canary 3=0.1", "and version 3 for a tenth"),
    ),
    "prompts rollback": (("antiphon prompts rollback guide", "what was in force before"),),
    "simulate": (
        ("antiphon simulate load 10m-users", "how many replicas ten million people take"),
        ("antiphon simulate engines", "which engine models there are"),
    ),
    "simulate load": (
        ("antiphon simulate load 10m-users", "the fewest replicas that keep the objectives"),
        (
            "antiphon simulate load 10m-users --replicas 40 --surge 3 --plot surge.svg",
            "forty replicas in a viral moment",
        ),
    ),
    "simulate trace": (
        ("antiphon simulate trace requests.csv --replicas 4", "recorded traffic on four replicas"),
        ("antiphon simulate trace requests.csv --slots 16", "with another number of slots"),
    ),
    "simulate calibrate": (
        ("antiphon simulate calibrate --out mine.json", "learn what this machine's engine does"),
        ("antiphon simulate load 10m-users --engine mine.json", "and use that"),
    ),
    "simulate engines": (("antiphon simulate engines", "their names, and what they stand for"),),
    "engines": (("antiphon engines verify", "whether the engine does what it must"),),
    "engines verify": (
        ("antiphon engines verify", "after a change of engine, driver or model"),
        ("antiphon engines verify --storm 50 --out report.json", "sooner done, and kept"),
    ),
}
