"""One fit: arguments, the rows without outliers, the search, and the final model."""

from autokernel.fit.arguments import Arguments
from autokernel.fit.finish import finished, model_of, refitted
from autokernel.fit.new_rows import COVERAGE, is_inside, updated
from autokernel.fit.progress import HEADER, Monitor
from autokernel.fit.run import Run
