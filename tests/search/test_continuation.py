"""Searches that go on from a history."""

import pytest

from autokernel.search import SOT, History, Phase

SMALL = {"population_size": 20, "n_offspring": 4, "n_generations": 2}


def signature(history):
    """What was evaluated, in order, and on whose account."""
    return [(str(trial.evaluation.expression), trial.phase) for trial in history]


class Laboratory:
    """Runs one search from histories of different lengths; notes what was given to each fit."""

    def __init__(self, run, planted, task, *, strategy=None, **settings):
        self.run, self.planted, self.task, self.settings = run, planted, task, settings
        self.strategy = strategy or SOT(**SMALL)
        self.fits = []

    def evaluate(self, expression, known):
        self.fits.append((str(expression), [str(evaluation.expression) for evaluation in known]))
        return self.planted(expression, known)

    def go_on_from(self, trials, **settings):
        self.fits.clear()
        given = {**self.settings, **settings}
        history = History(10, list(trials))
        return self.run(self.evaluate, self.strategy, self.task, history=history, **given)


@pytest.mark.parametrize(("n_iter", "batch_size"), [(4, 1), (5, 3)])
def test_a_search_goes_on_from_wherever_its_history_ends(
    run, planted, make_task, strategy, n_iter, batch_size
):
    settings = {"n_iter": n_iter, "batch_size": batch_size}
    laboratory = Laboratory(run, planted, make_task(), strategy=strategy, **settings)
    whole = laboratory.go_on_from([])
    fits = list(laboratory.fits)
    n = len(whole.history)
    assert [trial.phase for trial in whole.history] == (
        [Phase.INITIAL] * (n - n_iter) + [Phase.SEARCH] * n_iter
    )
    for length in [0, n - n_iter - 1, *range(n - n_iter, n + 1)]:
        again = laboratory.go_on_from(whole.history.trials[:length])
        assert again.stop_reason == whole.stop_reason == "n_iter"
        assert signature(again.history) == signature(whole.history)
        assert laboratory.fits == fits[length:]
        # what was known is kept as it is
        assert again.history.trials[:length] == whole.history.trials[:length]


def test_a_cut_design_goes_on_by_the_lengthscales_in_the_history(run, make_evaluation, make_task):
    scales = {column: 1.0 / (1 + column) for column in range(12)}

    def evaluate(expression, known):
        return make_evaluation(expression, -float(expression.n_leaves), lengthscales=scales)

    task = make_task(12, base_kernels=("SE", "RQ"), max_leaves=16)
    laboratory = Laboratory(run, evaluate, task, n_iter=1)
    whole = laboratory.go_on_from([]).history
    assert len(whole) == 62  # 12 columns would make 72 and the classics; with noise alone
    for length in (1, 2, 30, 59, 60, 61, 62):
        assert signature(laboratory.go_on_from(whole.trials[:length]).history) == signature(whole)


@pytest.mark.parametrize("first", [0, 3, 4])
@pytest.mark.parametrize("batch_size", [1, 3])
def test_a_search_that_is_prolonged_is_the_longer_search(
    run, planted, make_task, strategy, first, batch_size
):
    # three and six are whole batches, the others end in the midst of one
    settings = {"strategy": strategy, "batch_size": batch_size}
    laboratory = Laboratory(run, planted, make_task(), **settings)
    long = laboratory.go_on_from([], n_iter=6)
    fits = list(laboratory.fits)
    short = laboratory.go_on_from([], n_iter=first)
    assert signature(short.history) == signature(long.history)[: len(short.history)]
    prolonged = laboratory.go_on_from(short.history.trials, n_iter=6)
    assert signature(prolonged.history) == signature(long.history)
    assert laboratory.fits == fits[len(short.history) :]


@pytest.mark.parametrize("settings", [{"batch_size": 3}, {"batch_size": 4, "seed": 1}])
@pytest.mark.parametrize("first", [1, 2, 4])
def test_a_history_from_other_settings_gets_as_many_kernels_as_are_asked_for(
    run, planted, make_task, first, settings
):
    laboratory = Laboratory(run, planted, make_task())
    trials = laboratory.go_on_from([], n_iter=first).history.trials
    history = laboratory.go_on_from(trials, n_iter=5, **settings).history
    assert history.n_searched == 5
    assert history.trials[: len(trials)] == trials
    assert len(history.canonical_texts()) == len(history)


def test_a_search_goes_on_with_a_task_that_is_new(run, planted, make_task, strategy):
    """As in another process, where nothing is left of what a strategy may have kept."""
    settings = {"strategy": strategy, "n_iter": 5, "batch_size": 3}
    whole = Laboratory(run, planted, make_task(), **settings).go_on_from([]).history
    assert whole.trials[-1].phase is Phase.SEARCH  # nothing is pruned
    for length in (len(whole) - 4, len(whole) - 2):
        again = Laboratory(run, planted, make_task(), **settings).go_on_from(whole.trials[:length])
        assert signature(again.history) == signature(whole)


class Interrupting:
    """An observer that is interrupted after some trials."""

    def __init__(self, n_trials):
        self.n_trials = n_trials

    def begin(self, phase):
        pass

    def end(self, history):
        if len(history) == self.n_trials:
            raise KeyboardInterrupt
        return False

    def abandon(self):
        raise AssertionError


@pytest.mark.parametrize("n_trials", [1, 5, 14, 15, 16, 18])
def test_a_search_goes_on_from_where_it_was_interrupted(run, planted, make_task, n_trials):
    laboratory = Laboratory(run, planted, make_task(), n_iter=5, batch_size=3)
    whole = laboratory.go_on_from([]).history
    history = History(10)
    with pytest.raises(KeyboardInterrupt):
        run(
            laboratory.evaluate,
            laboratory.strategy,
            laboratory.task,
            history=history,
            n_iter=5,
            batch_size=3,
            observer=Interrupting(n_trials),
        )
    assert signature(history) == signature(whole)[:n_trials]
    assert signature(laboratory.go_on_from(history.trials).history) == signature(whole)
