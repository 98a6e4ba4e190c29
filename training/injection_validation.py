"""Cross-validation for injections: neither the e-mail nor the kind of attack was seen before."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random

import numpy as np

from antiphon.classifier.injection import InjectionParts, Vectors, injection_logit
from antiphon.classifier.linear import Floats
from training.fitting import fit_platt
from training.injections import Document, Samples, fit_injection, learnt_from, samples

FOLDS = 5
TURNS_AT_MOST = 0.015
MAILS_AT_MOST = 1


@dataclass(frozen=True, slots=True)
class HeldDocuments:
    """Documents and what models said of them that knew neither their source nor their attack."""

    documents: tuple[Document, ...]
    logits: Floats


def injection_held_out(
    public: Sequence[Document], own: Sequence[Document], embedder: Vectors
) -> HeldDocuments:
    learnt = [*learnt_from(public), *own]
    found = samples(learnt, embedder)
    fold = _folds(public)
    documents, logits = [], []
    for each in range(FOLDS):
        kept = np.array([not _touches(document, each, fold) for document in learnt])
        parts = fit_injection(found, kept[found.document])
        for document in public:
            if _is_tested(document, each, fold):
                documents.append(document)
                logits.append(injection_logit(document.text, parts, embedder))
    return HeldDocuments(tuple(documents), np.array(logits, dtype=np.float32))


def fit_all_injections(
    public: Sequence[Document],
    own: Sequence[Document],
    embedder: Vectors,
    held: HeldDocuments,
) -> InjectionParts:
    """What ships: fitted on every document, its score 0.5 where the limits of false alarms lie."""
    found: Samples = samples([*learnt_from(public), *own], embedder)
    parts = fit_injection(found, np.ones(len(found.document), dtype=np.bool_))
    attacked = np.array([document.attack is not None for document in held.documents])
    weights = np.where(attacked, attacked.mean(), 1 - attacked.mean())
    slope, _ = fit_platt(held.logits, attacked.astype(np.float32), (1 / weights).astype(np.float32))
    return replace(parts, slope=slope, intercept=-slope * limit(held))


def limit(held: HeldDocuments) -> float:
    """The logit above which few clean documents lie."""
    turns = [
        logit
        for document, logit in zip(held.documents, held.logits, strict=True)
        if document.set == "turns"
    ]
    mails = sorted(
        float(logit)
        for document, logit in zip(held.documents, held.logits, strict=True)
        if document.set == "mail" and document.attack is None
    )
    allowed = mails[-1 - MAILS_AT_MOST] if len(mails) > MAILS_AT_MOST else mails[-1]
    return max(float(np.quantile(turns, 1 - TURNS_AT_MOST)), allowed + 1e-3)


def _folds(public: Sequence[Document]) -> dict[str, int]:
    random = Random(5)
    found: dict[str, int] = {}
    names = {document.source for document in public}, {document.kind for document in public} - {""}
    for each in names:
        ordered = sorted(each)
        random.shuffle(ordered)
        found.update((name, at % FOLDS) for at, name in enumerate(ordered))
    return found


def _touches(document: Document, each: int, fold: dict[str, int]) -> bool:
    """Whether a model that is tested on this fold may not have seen the document."""
    if document.set == "own":
        return False
    return fold[document.source] == each or fold.get(document.kind) == each


def _is_tested(document: Document, each: int, fold: dict[str, int]) -> bool:
    if fold[document.source] != each:
        return False
    return not document.kind or fold[document.kind] == each
