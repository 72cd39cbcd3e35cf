"""Columns with names, which the command line gives to the estimator."""

import numpy as np
import pandas as pd
import pytest

from autokernel.data.named import NamedColumns
from tests.fits import small

DAYS = np.arange(18_000.0, 18_020.0)
COLUMNS = NamedColumns(["day", "level"], np.column_stack([DAYS, DAYS % 7]), [0])
FRAME = pd.DataFrame({"day": pd.to_datetime(DAYS, unit="D"), "level": DAYS % 7})
Y = np.sin(DAYS)


@pytest.fixture(scope="module")
def model():
    """A model that was fitted to named columns."""
    return small(n_iter=0).fit(COLUMNS, Y)


def test_named_columns_are_the_same_as_a_data_frame(model):
    other = small(n_iter=0).fit(FRAME, Y)
    assert model.feature_names_in_.tolist() == ["day", "level"]
    assert model.date_columns_ == other.date_columns_ == [0]
    assert model.best_expression_ == other.best_expression_
    np.testing.assert_array_equal(model.predict(COLUMNS), other.predict(FRAME))
    np.testing.assert_array_equal(model.predict(FRAME), other.predict(COLUMNS))
    rows = COLUMNS.rows(np.array([3, 5]))
    np.testing.assert_array_equal(model.predict(rows), model.predict(FRAME.iloc[[3, 5]]))


def test_other_columns_than_those_of_fit_are_refused(model):
    swapped = NamedColumns(["level", "day"], COLUMNS.values[:, ::-1], [1])
    with pytest.raises(ValueError, match=r"must have the columns \['day', 'level'\], as in fit"):
        model.predict(NamedColumns(["day", "depth"], COLUMNS.values, [0]))
    with pytest.raises(ValueError, match="got dates: give dates to both"):
        model.predict(swapped)
