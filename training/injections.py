"""Documents with and without an instruction hidden in them, and the sentences to learn from."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

import numpy as np
from numpy.typing import NDArray

from antiphon.classifier.injection import InjectionParts, Vectors, paired, passages, seen, shape
from antiphon.classifier.linear import Floats
from antiphon.classifier.ngrams import Bags, bags
from antiphon.classifier.text import cleaned, sentences, spread
from training.fitting import fit_ngrams, taken
from training.kernels import fit_kernel
from training.rows import OWN, turns

PLACES = ("start", "middle", "end")
HARMLESS_AT_MOST = 4000
"""Sentences: the weights hold a vector of each."""
NUMBERS, NARROW, RIDGE = 192, 1.5, 0.3
_OTHERS = {"turns": 3, "mail": 8, "own": 8}
"""So many harmless sentences of a passage are learned from."""
_WEIGHTS = {"turns": 0.8, "mail": 1.0, "own": 1.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One text; `attack` is the sentence in it that doesn't belong, if any. The groups keep an
    e-mail, and an attack's kind, on one side of a split."""

    text: str
    attack: str | None
    set: str
    source: str
    kind: str = ""
    place: str = ""


@dataclass(frozen=True, slots=True)
class Samples:
    """Sentences to learn from, each with the passage it stands in, and whose document they are."""

    vectors: Floats
    """Of the sentence and its passage together."""
    bags: Bags
    labels: Floats
    weights: Floats
    document: NDArray[np.int64]


def hidden(document: str, attack: str, place: str) -> str:
    """The attack put where `place` says: start, middle or end."""
    if place == "start":
        return f"{attack}\n{document}"
    if place == "end":
        return f"{document}\n{attack}"
    parts = list(sentences(document))
    at = max(1, len(parts) // 2)
    return " ".join([*parts[:at], attack, *parts[at:]])


def public_documents(folder: Path) -> list[Document]:
    """Every attack in every e-mail at every place, the e-mails as they are, and turns of
    MT-Bench-101."""
    attacks = json.loads((folder / "bipia" / "text_attacks_half.json").read_text("utf-8"))
    lines = (folder / "bipia" / "email_half.jsonl").read_text("utf-8").splitlines()
    mails = [json.loads(line)["context"] for line in lines]
    found = []
    for number, mail in enumerate(mails):
        source = f"mail {number}"
        found.append(Document(text=mail, attack=None, set="mail", source=source))
        for kind, texts in sorted(attacks.items()):
            for attack in texts:
                found += [
                    Document(
                        text=hidden(mail, attack, place),
                        attack=attack,
                        set="mail",
                        source=source,
                        kind=kind,
                        place=place,
                    )
                    for place in PLACES
                ]
    for number, (user, bot) in enumerate(turns(folder / "mtbench101_half.jsonl")):
        for text, kept in ((user, number % 2 == 0), (bot, number % 6 == 0)):
            if kept:
                found.append(Document(text=text, attack=None, set="turns", source=f"t {number}"))
    return found


def own_documents(*, seed: int = 2, each: int = 8) -> list[Document]:
    """Those that we wrote, and each with attacks drawn at random."""
    random = Random(seed)
    texts = (OWN / "documents.txt").read_text("utf-8").split("\n---\n")
    attacks = [line for _, line in _lines("attacks.txt")]
    found = []
    for number, text in enumerate(texts):
        source = f"own {number}"
        found.append(Document(text=text.strip(), attack=None, set="own", source=source))
        for attack in random.sample(attacks, each):
            place = random.choice(["start", "middle", "end"])
            found.append(
                Document(
                    text=hidden(text.strip(), attack, place),
                    attack=attack,
                    set="own",
                    source=source,
                )
            )
    for kind, line in _lines("jailbreaks.txt"):
        tried = line if kind == "jailbreak" else None
        found += [Document(text=line, attack=tried, set="own", source=line)] * 3
    for _, line in _lines("requests.txt"):
        found.append(Document(text=line, attack=None, set="own", source=line))
    for kind, line in _lines("attacks.txt"):  # alone in a chat, most of them are harmless
        if kind in ("task", "form"):
            found.append(Document(text=line, attack=None, set="own", source=line))
        if kind == "command":
            found.append(Document(text=line, attack=line, set="own", source=line))
    return found


def samples(documents: Sequence[Document], embedder: Vectors, *, seed: int = 3) -> Samples:
    """The attack of each document that has one, and sentences at random that are none."""
    random = Random(seed)
    rows: list[tuple[int, str, str, float, float]] = []
    for number, document in enumerate(documents):
        attack = {cleaned(each) for each in sentences(document.attack or "")}
        for passage in passages(document.text)[:3]:
            whole = shape(passage)
            clean = [cleaned(sentence) for sentence in passage]
            rows += [(number, whole, each, 1.0, 1.0) for each in clean if each in attack]
            others = [each for each in clean if each not in attack]
            chosen = random.sample(others, min(_OTHERS[document.set], len(others)))
            weight = _WEIGHTS[document.set] * (0.3 if document.attack else 1.0)
            rows += [(number, whole, each, 0.0, weight) for each in chosen]
    vectors = _unique([sentence for _, _, sentence, _, _ in rows], embedder)
    around = _unique([whole for _, whole, _, _, _ in rows], embedder)
    return Samples(
        paired(vectors, around),
        bags([spread(sentence) for _, _, sentence, _, _ in rows]),
        np.array([[label] for _, _, _, label, _ in rows], dtype=np.float32),
        np.array([weight for *_, weight in rows], dtype=np.float32),
        np.array([number for number, *_ in rows], dtype=np.int64),
    )


def fit_injection(found: Samples, chosen: NDArray[np.bool_]) -> InjectionParts:
    """Fits the sentences chosen. Calibration is left at 1 and 0."""
    positive = np.flatnonzero(chosen & (found.labels[:, 0] > 0.5))
    negative = np.flatnonzero(chosen & (found.labels[:, 0] < 0.5))
    if len(negative) > HARMLESS_AT_MOST:
        drawn = np.random.default_rng(0).choice(negative, HARMLESS_AT_MOST, replace=False)
        negative = np.sort(drawn)
    at = np.concatenate([positive, negative])
    labels, weights = found.labels[at], _balanced(found.labels[at], found.weights[at])
    return InjectionParts(
        ngrams=fit_ngrams(taken(found.bags, at), labels, weights),
        kernel=fit_kernel(
            found.vectors[at], labels, weights, numbers=NUMBERS, narrow=NARROW, ridge=RIDGE
        ),
        slope=1.0,
        intercept=0.0,
    )


def learnt_from(documents: Sequence[Document]) -> list[Document]:
    """Of every attack in every e-mail only one of the three places, in turn."""
    found, attacked = [], 0
    for document in documents:
        if not document.kind or attacked % 3 == attacked // 3 % 3:
            found.append(document)
        attacked += bool(document.kind)
    return found


def _balanced(labels: Floats, weights: Floats) -> Floats:
    """Weights by which both labels count alike, one on average."""
    positive = labels[:, 0] > 0.5
    share = weights[positive].sum() / max(float(weights[~positive].sum()), 1e-9)
    balanced: Floats = np.where(positive, weights, weights * share)
    balanced = (balanced / balanced.mean()).astype(np.float32)
    return balanced


def _unique(texts: Sequence[str], embedder: Vectors) -> Floats:
    """The texts' vectors, each different text embedded once."""
    different, place = np.unique(np.array(texts, dtype=object), return_inverse=True)
    found: Floats = seen(list(different), embedder)[place]
    return found


def _lines(name: str) -> Iterator[tuple[str, str]]:
    kind = ""
    for line in (OWN / name).read_text("utf-8").splitlines():
        if line.startswith("= "):
            kind = line[2:]
        elif line:
            yield kind, line
