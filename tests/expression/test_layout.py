import pytest

from autokernel.expression import parse_expression, slots_of, theta_order


def test_the_parameters_of_a_node_stand_together_in_the_order_of_the_nodes():
    slots = slots_of(parse_expression("SE[0] * (PER[1] + LIN[0])"))
    assert [(str(node), entries.start, entries.stop) for node, entries in slots] == [
        ("SE[0]", 0, 2),
        ("PER[1]", 2, 5),
        ("LIN[0]", 5, 7),
    ]


@pytest.mark.parametrize(
    ("text", "nodes", "order"),
    [
        ("SE[0]", [0], [0, 1, 2]),
        ("SE[0] + PER[0]", [1, 0], [2, 3, 4, 0, 1, 5]),
        ("SE[0] * (PER[1] + LIN[0])", [1, 2, 0], [2, 3, 4, 5, 6, 0, 1, 7]),
    ],
)
def test_parameters_follow_their_nodes_and_the_noise_stays_the_last(text, nodes, order):
    assert theta_order(parse_expression(text), nodes).tolist() == order
