"""The null model as an expression: noise alone."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from autokernel.expression.tree import Expression, Leaf
from autokernel.kernels import NULL_KERNEL, NullKernel
from autokernel.operators import Operator


@dataclass(frozen=True, slots=True, repr=False)
class Null(Expression):
    """The kernel that is zero: its covariance is that of the noise.

    It has no leaves and no parameters, so theta holds the noise variance only. It cannot be an
    operand, as every kernel has noise already.
    """

    canonical = NULL_KERNEL.name
    n_leaves = 0
    n_subtrees = 1
    column = None
    last_column = -1

    @property
    def depth(self) -> int:
        """Zero, as there is no operator."""
        return 0

    @property
    def leaves(self) -> tuple[Leaf, ...]:
        """No leaves."""
        return ()

    @property
    def nodes(self) -> tuple[Expression, ...]:
        """No nodes, as nothing in it can have parameters."""
        return ()

    @property
    def declared(self) -> NullKernel:
        """The kernel that is zero."""
        return NULL_KERNEL

    def subtrees(self) -> Iterator[Expression]:
        """Yield the expression itself."""
        yield self

    def subtree(self, index: int) -> Expression:
        """Return the expression itself, the only subtree."""
        return self.replace(index, self)

    def leaf_index(self, leaf: int) -> int:
        """Raise an ``IndexError``, as there are no leaves."""
        raise IndexError(f"leaf must be that of an expression with leaves, got {leaf} for {self}")

    def terms(self, operator: Operator) -> tuple[Expression, ...]:  # noqa: ARG002 - it joins nothing
        """Return the expression itself, whatever the operator."""
        return (self,)

    def term_texts(self, operator: Operator) -> tuple[str, ...]:  # noqa: ARG002 - it joins nothing
        """Return the text of the expression, whatever the operator."""
        return (self.canonical,)

    def replace(self, index: int, new: Expression) -> Expression:
        """Return ``new``, as the only subtree is the expression itself."""
        if index != 0:
            raise IndexError(f"index must be 0 for {self}, got {index}")
        return new

    def to_text(self, feature_names: Sequence[str] | None = None) -> str:  # noqa: ARG002 - no columns
        """Write the name of the null model."""
        return self.canonical

    def __repr__(self) -> str:
        return f"<Expression {self}>"


NOISE = Null()
"""The null model, which has no structure but noise."""
