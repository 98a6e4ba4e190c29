"""A judge process whose classifier is a few lines: as the real one in all but what it finds.
`python -m antiphon.testing.judge_process`, started by a JudgeLauncher."""

from collections.abc import Mapping, Sequence

from antiphon.judge.process import main
from antiphon.verdicts import CATEGORIES

MODULE = "antiphon.testing.judge_process"
BAD, CRASHES = "bad words", "crashes the matcher"


class ToyScorer:
    """Finds violence in bad words, and an injection in nothing."""

    name = "toy"
    thresholds: Mapping[str, float] = dict.fromkeys(CATEGORIES, 0.5)
    injection_threshold = 0.5
    harmless_below = 0.05

    def scores(self, texts: Sequence[str], *, light: bool = False) -> list[Mapping[str, float]]:
        if any(CRASHES in text for text in texts):
            raise ValueError("a defect")
        return [
            dict.fromkeys(CATEGORIES, 0.0) | {"violence": 0.9 if BAD in text else 0.1}
            for text in texts
        ]

    def injection(self, texts: Sequence[str]) -> list[float]:
        return [0.0] * len(texts)


if __name__ == "__main__":
    main(ToyScorer)
