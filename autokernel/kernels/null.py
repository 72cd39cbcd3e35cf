"""The kernel of the null model: zero everywhere, so that only the noise is left."""

from typing import ClassVar

from autokernel.kernels.declared import Declared


class NullKernel(Declared):
    """The kernel whose values are zero; it acts on no column and has no parameters.

    It is no base kernel, as it cannot be joined with others. Its name is reserved for it.
    """

    name: ClassVar[str] = "NOISE"
    has_many_modes: ClassVar[bool] = False
    broadcasts: ClassVar[bool] = True

    @property
    def label(self) -> str:
        """The name in expressions."""
        return self.name


NULL_KERNEL = NullKernel()


def check_not_reserved(argument: str, name: str) -> None:
    """Raise a ``ValueError`` if a kernel or operator of the user has the name of the null model."""
    if name == NULL_KERNEL.name:
        raise ValueError(
            f"{argument} must not hold the name {name!r}, which means noise alone: "
            "give it another name"
        )
