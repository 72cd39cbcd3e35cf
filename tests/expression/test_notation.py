import ast
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autokernel.exceptions import AutoKernelError, ExpressionSyntaxError
from autokernel.expression import (
    IDENTITY,
    TARGET_SCALES,
    Expression,
    Leaf,
    Operation,
    parse_expression,
)
from autokernel.kernels import ADD, BASE_KERNELS, MULTIPLY, Seasonal
from tests.batteries import EVERY_OPERATOR, GRAMMAR, ON_SCALES, expressions
from tests.kernels.gate import GATE

KNOWN = ", ".join(BASE_KERNELS)
SE = BASE_KERNELS["SE"]
A, B, C = Leaf(SE, 0), Leaf(BASE_KERNELS["PER"], 1), Leaf(BASE_KERNELS["LIN"], 0)

NASTY_NAMES = [
    "", " ", "x", "two words", " outer ", "0", "12", "-1", "+3", "1.5", "x0", "0x", "²", "٣", "x²",
    "[", "]", "a[0]", "]]", '"', "'", '""', '"quoted"', 'half"', "\\", "\\\\", '\\"', "a\\b", "\\n",
    "\n", "a\nb", "\t", "a\tb", "\r", "\x1c", "\u2028", "a\u2028b", "\xa0x", "\0", "time (s)",
    "SE[0]", "a + b", "a*b", "(", ")", "température", "温度", "🙂",
]  # fmt: skip
feature_names = st.one_of(
    st.sampled_from(NASTY_NAMES),
    st.text(max_size=5),
    st.text(alphabet="[]\"'\\ \n\t01+a", max_size=6),
)
three_names = st.lists(feature_names, min_size=3, max_size=3, unique=True)
leaf_texts = st.sampled_from([str(leaf) for leaf in GRAMMAR.leaves])


def with_more_brackets(texts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Join texts by operators and put some in brackets, with any blanks."""
    blanks = st.sampled_from(["", " ", "  ", "\t"])
    return st.one_of(
        st.tuples(texts, blanks, st.sampled_from("+*"), blanks, texts).map("".join),
        st.tuples(blanks, texts, blanks).map(lambda parts: f"({''.join(parts)})"),
    )


texts = st.recursive(leaf_texts, with_more_brackets, max_leaves=8)


def tree_of_python(node: ast.expr) -> Expression:
    """Build the expression that Python's own parser sees."""
    match node:
        case ast.Subscript(value=ast.Name(id=kernel), slice=ast.Constant(value=column)):
            return Leaf(BASE_KERNELS[kernel], column)
        case ast.BinOp(left=left, op=op, right=right):
            operator = {ast.Add: ADD, ast.Mult: MULTIPLY}[type(op)]
            return Operation(operator, tree_of_python(left), tree_of_python(right))
    raise AssertionError(ast.dump(node))


@given(texts)
def test_precedence_and_grouping_are_those_of_python(text):
    expected = tree_of_python(ast.parse(text.strip(), mode="eval").body)
    assert parse_expression(text) == expected


@given(
    expressions(EVERY_OPERATOR) | expressions(ON_SCALES),
    st.sampled_from((IDENTITY, *TARGET_SCALES)),
    st.none() | three_names,
)
def test_printing_and_parsing_give_back_the_tree(expression, target, names):
    expression = expression.on(target)
    assert parse_expression(str(expression), operators=[GATE]) == expression
    assert parse_expression(expression.to_text(names), names, operators=[GATE]) == expression
    assert repr(expression) == f"<Expression {expression}>"


def test_a_text_holds_all_that_a_kernel_is():
    expression = Leaf(SE, 0, "log").on("sqrt")
    assert str(expression) == "sqrt(y) ~ SE[log(0)]"
    same, hash_of_same = parse_expression(str(expression)), hash(parse_expression(str(expression)))
    assert (same, hash_of_same) == (expression, hash(expression))
    for other in ("SE[log(0)]", "sqrt(y) ~ SE[0]", "log(y) ~ SE[log(0)]", "sqrt(y) ~ SE[sqrt(0)]"):
        assert parse_expression(other) != expression
    season = parse_expression("PER0_5[1]")
    assert season == Leaf(Seasonal(0.5), 1)
    assert season not in (Leaf(Seasonal(5), 1), Leaf(BASE_KERNELS["PER"], 1))


@pytest.mark.parametrize("name", NASTY_NAMES)
def test_a_feature_name_is_found_among_all_others(name):
    column = NASTY_NAMES.index(name)
    text = Leaf(BASE_KERNELS["RQ"], column).to_text(NASTY_NAMES)
    assert parse_expression(text, NASTY_NAMES) == Leaf(BASE_KERNELS["RQ"], column)


@given(expressions())
def test_printed_brackets_are_all_needed(expression):
    text = str(expression)
    for start in (i for i, symbol in enumerate(text) if symbol == "("):
        depth, stop = 1, start
        while depth:
            stop += 1
            depth += {"(": 1, ")": -1}.get(text[stop], 0)
        without = text[:start] + text[start + 1 : stop] + text[stop + 1 :]
        assert parse_expression(without) != expression


def test_blanks_brackets_and_zeros_that_change_nothing_are_read():
    assert parse_expression(" SE [ 0 ]\n*\tPER[1] ") == A * B
    assert parse_expression("(((SE[0])) * PER[1]) + LIN[0]") == A * B + C
    assert parse_expression("SE[007]") == Leaf(SE, 7)


@pytest.mark.parametrize(
    ("text", "names", "expected"),
    [
        ("SE[time]", ["time"], 0),
        ("SE[ time ]", ["x", "time"], 1),
        ('SE["time"]', ["x", "time"], 1),
        ("SE[wind speed]", ["x", "wind speed"], 1),
        ("SE[1]", ["x", "time"], 1),
        ("SE[1]", ["1", "x"], 1),
        ('SE["1"]', ["1", "x"], 0),
        ("SE[it's]", ["x", "it's"], 1),
        (r"SE[a\b]", ["x", r"a\b"], 1),
        (r'SE["\a\\\"b"]', ["x", r"a\"b"], 1),
        ('SE["a\\\nb"]', ["x", "a\nb"], 1),
    ],
)
def test_a_column_is_an_index_or_else_a_feature_name(text, names, expected):
    assert parse_expression(text, names) == Leaf(SE, expected)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("time", "SE[time]"),
        ("wind speed (m/s)", "SE[wind speed (m/s)]"),
        ("0", 'SE["0"]'),
        (" x", 'SE[" x"]'),
        ("", 'SE[""]'),
        ("a[0]", 'SE["a[0]"]'),
        ('5" pipe', r'SE["5\" pipe"]'),
        ("a\\b", r'SE["a\\b"]'),
    ],
)
def test_a_feature_name_is_printed_in_quotes_only_where_needed(name, text):
    assert Leaf(SE, 0).to_text([name]) == text


EXPECTED_LEAF = "expected a base kernel such as SE[0], or '('"
EXPECTED_COLUMN = "expected SE with a column in brackets: SE[0]"
EXPECTED_END = "expected '+', '*' or the end, got"
STANDS_ALONE = "NOISE stands alone, as every kernel has noise"
BAD_TEXTS = [
    ("NOISE + SE[0]", None, 0, STANDS_ALONE),
    ("SE[0] * (LIN[0] + NOISE)", None, 18, STANDS_ALONE),
    ("NOISE * NOISE", None, 8, STANDS_ALONE),
    ("GATE[0](SE[0], NOISE)", None, 15, STANDS_ALONE),
    ("NOISE[0]", None, 5, STANDS_ALONE),
    ("SE[0] + NOISE [0]", None, 14, STANDS_ALONE),
    ("CP(SE[0], LIN[0])", None, 2, "expected the column of CP in square brackets"),
    ("GATE[0](SE[0])", None, 13, "expected ',': GATE has 2"),
    ("GATE[0](SE[0], LIN[0], PER[0])", None, 21, "expected ')'"),
    ("GATE[0] SE[0]", None, 8, "expected '(': GATE has 2"),
    ("MISSING[0](SE[0], LIN[0])", None, 0, "unknown base kernel 'MISSING'"),
    ("", None, 0, EXPECTED_LEAF),
    ("   ", None, 3, EXPECTED_LEAF),
    ("SE", None, 0, EXPECTED_COLUMN),
    ("SE[0", None, 0, EXPECTED_COLUMN),
    ("SE(0)", None, 0, EXPECTED_COLUMN),
    ("+ SE[0]", None, 0, EXPECTED_LEAF),
    ("SE[0] +", None, 7, EXPECTED_LEAF),
    ("SE[0] + + SE[0]", None, 8, EXPECTED_LEAF),
    ("SE[0] * (PER[1] + )", None, 18, EXPECTED_LEAF),
    ("()", None, 1, EXPECTED_LEAF),
    ("(SE[0]", None, 6, "expected ')'"),
    ("(SE[0] + (PER[1]) - LIN[0])", None, 18, "expected ')'"),
    ("SE[0])", None, 5, f"{EXPECTED_END} ')'"),
    ("SE[0] - LIN[0]", None, 6, f"{EXPECTED_END} '-'"),
    ("SE[0] PER[1]", None, 6, f"{EXPECTED_END} 'P'"),
    ("SE[0] ** SE[0]", None, 7, EXPECTED_LEAF),
    ("XY[0]", None, 0, f"unknown base kernel 'XY', the known ones are {KNOWN}"),
    ("SE[0] + se[0]", None, 8, f"unknown base kernel 'se', the known ones are {KNOWN}"),
    ("PER0[0]", None, 0, "unknown base kernel 'PER0'"),
    ("SE[time]", None, 3, "a zero-based index where no feature_names are given, got 'time'"),
    ("SE[-1]", None, 3, "a zero-based index where no feature_names are given, got '-1'"),
    ("SE[]", None, 3, "a zero-based index where no feature_names are given, got ''"),
    ("SE[٣]", None, 3, "a zero-based index where no feature_names are given, got '٣'"),
    ("SE[0] * SE[2]", ["a", "b"], 11, "must be below the number of columns 2, got 2"),
    ("SE[ c ]", ["a", "b"], 4, "unknown column 'c', the known ones are 'a', 'b'"),
    ('SE["c"]', ["a", "b"], 4, "unknown column 'c', the known ones are 'a', 'b'"),
    ("SE[-1]", ["a", "b"], 3, "unknown column '-1', the known ones are 'a', 'b'"),
    ("SE[a] + SE[b", ["a", "b"], 8, EXPECTED_COLUMN),
    ('SE["a]', ["a", "b"], 0, EXPECTED_COLUMN),
]


@pytest.mark.parametrize(("text", "names", "position", "message"), BAD_TEXTS)
def test_an_error_says_what_is_wrong_and_points_at_the_place(text, names, position, message):
    with pytest.raises(ExpressionSyntaxError) as caught:
        parse_expression(text, names, operators=[GATE])
    assert isinstance(caught.value, AutoKernelError)
    assert isinstance(caught.value, ValueError)
    for error in (caught.value, pickle.loads(pickle.dumps(caught.value))):
        what, shown, pointer = str(error).split("\n")
        assert message in what
        assert error.text == text
        assert error.position == position
    assert shown == f"    {text}"
    assert pointer.index("^") == 4 + position


@pytest.mark.parametrize("text", [None, 0, b"SE[0]", A])
def test_only_a_str_is_parsed(text):
    with pytest.raises(TypeError, match=f"text must be a str .*, got {type(text).__name__}"):
        parse_expression(text)


def test_columns_that_share_a_name_are_written_by_index_and_read_back():
    names = ["a", "b", "a"]
    expression = parse_expression("SE[0] + SE[1] * SE[2]")
    text = expression.to_text(names)
    assert text == "SE[0] + SE[b] * SE[2]"
    assert parse_expression(text, names) == expression
    with pytest.raises(ExpressionSyntaxError, match="several columns are named 'a'"):
        parse_expression("SE[a]", names)


def test_names_that_are_not_text_are_written_as_such():
    expression = parse_expression("SE[1]")
    assert expression.to_text([3, 7]) == 'SE["7"]'
    assert parse_expression('SE["7"]', [3, 7]) == expression
    with pytest.raises(ValueError, match=r"feature_names must name column 1 of SE\[1\], got 1"):
        expression.to_text(["only"])


def test_the_mark_stands_below_the_place_in_its_own_line():
    with pytest.raises(ExpressionSyntaxError) as info:
        parse_expression("SE[0]\n  + XY[0]")
    assert str(info.value).splitlines()[1:] == ["      + XY[0]", "        ^"]


@pytest.mark.parametrize(
    ("kernel", "column", "error", "message"),
    [(SE, column, ValueError, "column must") for column in (-1, 0.5, True, None, "0")]
    + [(one, 0, TypeError, "kernel must be a BaseKernel") for one in ("SE", None, type(SE))],
)
def test_a_leaf_is_made_of_a_base_kernel_and_a_column_that_can_be_read_back(
    kernel, column, error, message
):
    with pytest.raises(error, match=message):
        Leaf(kernel, column)
