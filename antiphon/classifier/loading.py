"""The weights' file as parts of a model, both ways, and the classifier that the package ships."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from antiphon.classifier import weights
from antiphon.classifier.embedder import Embedder
from antiphon.classifier.injection import InjectionParts
from antiphon.classifier.kernel import KernelHeads, Projection, squared
from antiphon.classifier.linear import NgramHeads
from antiphon.classifier.model import Classifier, Parts
from antiphon.classifier.words import WordHead


def load() -> Classifier:
    """The shipped classifier, ready for a text. Raises BadWeights, DamagedModel, OSError."""
    data = weights.path().read_bytes()
    arrays = weights.unpack(data)
    name = f"antiphon-moderation-{weights.digest(data)[:8]}"
    try:
        return Classifier(name, parts(arrays), injection_parts(arrays), Embedder())
    except KeyError as error:
        raise weights.BadWeights(f"without {error}") from error


def parts(arrays: Mapping[str, NDArray[Any]]) -> Parts:
    """The categories' part. Raises KeyError."""
    return Parts(
        ngrams=_ngrams(arrays, "ngrams"),
        kernel=_kernel(arrays, "kernel"),
        blend=float(arrays["blend"][0]),
        words=_words(arrays),
        word_blend=float(arrays["word_blend"][0]),
        full=arrays["full"],
        light=arrays["light"],
    )


def injection_parts(arrays: Mapping[str, NDArray[Any]]) -> InjectionParts:
    """The injections' part. Raises KeyError."""
    slope, intercept = arrays["injection"].tolist()
    return InjectionParts(
        ngrams=_ngrams(arrays, "injection.ngrams"),
        kernel=_kernel(arrays, "injection.kernel"),
        slope=slope,
        intercept=intercept,
    )


def arrays_of(found: Parts, injection: InjectionParts) -> dict[str, NDArray[Any]]:
    """Both parts as the file has them."""
    return {
        **_ngram_arrays("ngrams", found.ngrams),
        **_kernel_arrays("kernel", found.kernel),
        "blend": np.array([found.blend], dtype=np.float32),
        **_word_arrays(found.words),
        "word_blend": np.array([found.word_blend], dtype=np.float32),
        "full": found.full,
        "light": found.light,
        **_ngram_arrays("injection.ngrams", injection.ngrams),
        **_kernel_arrays("injection.kernel", injection.kernel),
        "injection": np.array([injection.slope, injection.intercept], dtype=np.float32),
    }


def _ngrams(arrays: Mapping[str, NDArray[Any]], name: str) -> NgramHeads:
    return NgramHeads(
        weights=arrays[f"{name}.weights"],
        scale=arrays[f"{name}.scale"],
        rarity=arrays[f"{name}.rarity"],
        bias=arrays[f"{name}.bias"],
    )


def _kernel(arrays: Mapping[str, NDArray[Any]], name: str) -> KernelHeads:
    unit, step = arrays[f"{name}.unit"], arrays[f"{name}.step"]
    known = arrays[f"{name}.known"].astype(np.float32) * unit
    return KernelHeads(
        projection=Projection(
            mean=arrays[f"{name}.mean"],
            scale=arrays[f"{name}.scale"],
            directions=arrays[f"{name}.directions"].astype(np.float32) * step,
            step=step,
        ),
        known=known,
        unit=unit,
        squares=squared(known),
        shares=arrays[f"{name}.shares"].astype(np.float32),
        bias=arrays[f"{name}.bias"],
        width=float(arrays[f"{name}.width"][0]),
    )


def _kernel_arrays(name: str, heads: KernelHeads) -> dict[str, NDArray[Any]]:
    return {
        f"{name}.mean": heads.projection.mean,
        f"{name}.scale": heads.projection.scale,
        f"{name}.directions": np.rint(heads.projection.directions / heads.projection.step).astype(
            np.int8
        ),
        f"{name}.step": heads.projection.step,
        f"{name}.known": np.rint(heads.known / heads.unit).astype(np.int8),
        f"{name}.unit": heads.unit,
        f"{name}.shares": heads.shares.astype(np.float16),
        f"{name}.bias": heads.bias,
        f"{name}.width": np.array([heads.width], dtype=np.float32),
    }


def _ngram_arrays(name: str, heads: NgramHeads) -> dict[str, NDArray[Any]]:
    return {
        f"{name}.weights": heads.weights,
        f"{name}.scale": heads.scale,
        f"{name}.rarity": heads.rarity,
        f"{name}.bias": heads.bias,
    }


def _words(arrays: Mapping[str, NDArray[Any]]) -> WordHead:
    listed = arrays["words"].tobytes().decode().split("\n")
    return WordHead(
        places={word: place for place, word in enumerate(listed)},
        rarity=arrays["words.rarity"],
        weights=arrays["words.weights"],
        bias=float(arrays["words.bias"][0]),
    )


def _word_arrays(head: WordHead) -> dict[str, NDArray[Any]]:
    listed = "\n".join(sorted(head.places, key=head.places.__getitem__)).encode()
    return {
        "words": np.frombuffer(listed, dtype=np.uint8),
        "words.rarity": head.rarity,
        "words.weights": head.weights,
        "words.bias": np.array([head.bias], dtype=np.float32),
    }
