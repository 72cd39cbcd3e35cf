"""Components, sentences and tables about a fitted model."""

from autokernel.explain.axes import Y_NAME
from autokernel.explain.description import Description
from autokernel.explain.mixin import ExplainMixin
from autokernel.explain.tables import Table
