import pytest

from autokernel.expression import leaf_slots, parse_expression, theta_order


def test_the_parameters_of_a_leaf_stand_together_in_the_order_of_the_leaves():
    slots = leaf_slots(parse_expression("SE[0] * (PER[1] + LIN[0])"))
    assert [(str(leaf), place.start, place.stop) for leaf, place in slots] == [
        ("SE[0]", 0, 2),
        ("PER[1]", 2, 5),
        ("LIN[0]", 5, 7),
    ]


@pytest.mark.parametrize(
    ("text", "leaves", "order"),
    [
        ("SE[0]", [0], [0, 1, 2]),
        ("SE[0] + PER[0]", [1, 0], [2, 3, 4, 0, 1, 5]),
        ("SE[0] * (PER[1] + LIN[0])", [1, 2, 0], [2, 3, 4, 5, 6, 0, 1, 7]),
    ],
)
def test_parameters_follow_their_leaves_and_the_noise_stays_the_last(text, leaves, order):
    assert theta_order(parse_expression(text), leaves).tolist() == order
