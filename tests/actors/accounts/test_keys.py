import hashlib
import re

from antiphon.actors.accounts.cache import Cache
from antiphon.actors.accounts.keys import hash_secret, is_secret, new_secret, shown_prefix


def test_a_secret_has_256_random_bits_behind_its_prefix():
    secrets = {new_secret() for _ in range(100)}

    assert len(secrets) == 100
    assert all(re.fullmatch(r"sk-antiphon-[A-Za-z0-9_-]{43}", secret) for secret in secrets)
    assert all(map(is_secret, secrets))


def test_what_is_kept_and_shown_does_not_give_it_away():
    secret = new_secret()

    assert hash_secret(secret) == hashlib.sha256(secret.encode()).hexdigest()
    assert shown_prefix(secret) == secret[:18]


def test_what_is_no_key_of_ours_is_told_by_its_shape():
    secret = new_secret()

    for text in ("", secret[:-1], secret + "a", f" {secret}", secret.replace("sk-", "SK-"), "sk-x"):
        assert not is_secret(text)
    assert not is_secret(secret[:-1] + "é")


def test_a_cache_forgets_what_was_used_longest_ago():
    cache: Cache[int] = Cache(2)
    cache.put("a", 1, now=0.0)
    cache.put("b", 2, now=1.0)
    cache.get("a")
    cache.put("c", 3, now=2.0)

    assert cache.get("b") is None
    assert cache.get("a") is not None
    assert len(cache) == 2
