"""The null model in a search: evaluated once, and kept from strategies."""

import pytest

from autokernel.search import Phase, StopReason


def signature(history):
    return [(str(trial.evaluation.expression), trial.phase) for trial in history]


def by_text(make_evaluation, scores):
    """Evaluate kernels by their texts."""

    def evaluate(expression, known):
        return make_evaluation(expression, scores.get(str(expression), -50.0))

    return evaluate


@pytest.mark.parametrize("n_iter", [0, 3])
def test_noise_is_evaluated_once_at_the_end_of_the_design(
    run, make_evaluation, make_task, make_script, n_iter
):
    script = make_script(
        fixed=["SE[0]"], grown=["LIN[0]"], proposals=["RQ[0]", "PER[0]", "SE[0] + LIN[0]"]
    )
    history = run(by_text(make_evaluation, {}), script, make_task(), n_iter=n_iter).history
    texts = [text for text, _ in signature(history)]
    assert texts[:3] == ["SE[0]", "LIN[0]", "NOISE"]
    assert texts.count("NOISE") == 1
    assert history.trials[2].phase is Phase.INITIAL


def test_noise_is_evaluated_where_no_column_varies(run, make_evaluation, make_task, make_script):
    script = make_script(fixed=["SE[0]"], proposals=["RQ[0]"])
    found = run(by_text(make_evaluation, {}), script, make_task(columns=()), n_iter=3)
    assert found.stop_reason is StopReason.EXHAUSTED
    assert signature(found.history) == [("NOISE", "initial")]


def test_noise_is_not_evaluated_again_where_a_search_goes_on(
    run, make_evaluation, make_task, make_script
):
    evaluate, script = by_text(make_evaluation, {}), make_script(fixed=["SE[0]", "LIN[0]"])
    whole = run(evaluate, script, make_task(), n_iter=0).history
    for length in range(4):
        history = type(whole)(10, whole.trials[:length])
        again = run(evaluate, script, make_task(), n_iter=0, history=history).history
        assert signature(again) == signature(whole)


@pytest.mark.parametrize("batch_size", [1, 2])
def test_strategies_and_warm_starts_are_not_shown_noise(
    run, make_evaluation, make_task, make_script, batch_size
):
    shown, given = [], []

    class Curious(make_script):
        def propose(self, task, history, **options):
            shown.append([str(one.expression) for one in history.evaluations])
            return super().propose(task, history, **options)

    def evaluate(expression, known):
        given.append([str(one.expression) for one in known])
        return make_evaluation(expression, 1.0 if not expression.leaves else 0.0)

    script = Curious(fixed=["SE[0]"], proposals=["RQ[0]", "RQ[0] + LIN[0]"])
    history = run(evaluate, script, make_task(), n_iter=2, batch_size=batch_size).history
    assert [text for text, _ in signature(history)] == ["SE[0]", "NOISE", *script.proposals]
    assert shown == [["SE[0]"], ["SE[0]", "RQ[0]"]][: len(shown)]
    assert given[2:] == [["SE[0]"], ["SE[0]", "RQ[0]"] if batch_size == 1 else ["SE[0]"]]


def test_no_strategy_proposes_noise(run, make_evaluation, make_task, strategy):
    def evaluate(expression, known):
        return make_evaluation(expression, -float(expression.n_leaves))

    history = run(evaluate, strategy, make_task(), n_iter=2, batch_size=2).history
    phases = [trial.phase for trial in history if not trial.evaluation.expression.leaves]
    assert phases == [Phase.INITIAL]
    assert not history.best.expression.leaves
    assert Phase.PRUNING not in [trial.phase for trial in history]  # nothing is simpler
