"""Kernels evaluated in workers, which may die, and evaluations that are kept."""

import os
import pickle
import warnings
from dataclasses import replace
from functools import partial

import joblib
import numpy as np
import pytest

from autokernel import parse_expression
from autokernel.deadline import Deadline
from autokernel.evidence import Evaluator
from autokernel.kernels.parameters import check_priors
from autokernel.search import evaluate_in_parallel
from autokernel.search.workers import Store

TEXTS = ["SE[0]", "LIN[0]", "SE[0] + LIN[0]", "SE[0] * LIN[0]", "SE[0] + SE[0]"]
EXPRESSIONS = [parse_expression(text) for text in TEXTS]


def make_evaluator(n_samples=12):
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(n_samples, 1))
    y = np.sin(6 * X[:, 0]) + 0.1 * rng.normal(size=n_samples)
    return Evaluator(X, y, priors=check_priors("default"), seed=0)


def unlike(evaluator, *, only=TEXTS, dies):
    """An evaluator that dies at some kernels, or raises; a local class travels to any worker."""

    class Unlike:
        prepare, without_fit, key = evaluator.prepare, evaluator.without_fit, evaluator.key
        priced = evaluator.priced

        def run(self, job, *, deadline):
            if str(job.expression) not in only:
                return evaluator.run(job, deadline=deadline)
            if dies:
                os._exit(1)
            raise RuntimeError("no such\nluck")

    return Unlike()


def bits(evaluation):
    """All that an evaluation has found, to the last bit."""
    numbers = (evaluation.score, evaluation.log_posterior, evaluation.log_evidence)
    arrays = (evaluation.theta.tobytes(), evaluation.hessian.tobytes())
    text = (str(evaluation.expression), evaluation.status, str(evaluation.parameters))
    return (*text, *map(float.hex, numbers), *arrays, evaluation.n_evaluations)


def n_kept(folder):
    return len(list(folder.rglob("output.pkl")))


@pytest.fixture(scope="module")
def evaluator():
    return make_evaluator()


@pytest.fixture(scope="module")
def alone(evaluator):
    """What the evaluator itself returns."""
    return [evaluator(expression) for expression in EXPRESSIONS]


@pytest.fixture
def memory(tmp_path):
    return joblib.Memory(tmp_path, verbose=0)


@pytest.mark.parametrize(("backend", "n_jobs"), [(None, None), ("loky", 2), ("threading", 3)])
def test_outcomes_are_those_of_the_evaluator_in_the_order_of_the_kernels(
    evaluator, alone, backend, n_jobs
):
    with joblib.parallel_config(backend=backend) if backend else joblib.parallel_config():
        outcomes = list(evaluate_in_parallel(evaluator, EXPRESSIONS, [], n_jobs=n_jobs))
    assert list(map(bits, outcomes)) == list(map(bits, alone))


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_evaluations_begin_at_the_known_fits(evaluator, alone, n_jobs):
    expression, known = parse_expression("SE[0] + LIN[0]"), alone[:2]
    (outcome,) = evaluate_in_parallel(evaluator, [expression], known, n_jobs=n_jobs)
    assert bits(outcome) == bits(evaluator(expression, known))
    assert outcome.n_evaluations != evaluator(expression).n_evaluations


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_who_takes_the_first_outcome_only_may_close_without_a_warning(evaluator, alone, n_jobs):
    outcomes = evaluate_in_parallel(evaluator, EXPRESSIONS, [], n_jobs=n_jobs)
    assert bits(next(outcomes)) == bits(alone[0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        outcomes.close()
    # the next ones get workers again
    assert bits(next(evaluate_in_parallel(evaluator, EXPRESSIONS, [], n_jobs=n_jobs))) == bits(
        alone[0]
    )


@pytest.mark.parametrize(("dies", "n_jobs"), [(False, 1), (False, 2), (True, 2)])
def test_a_kernel_that_kills_its_worker_is_a_row_with_the_reason_and_others_are_kept(
    evaluator, alone, memory, tmp_path, dies, n_jobs
):
    deadly = unlike(evaluator, only=[TEXTS[1]], dies=dies)
    outcomes = list(evaluate_in_parallel(deadly, EXPRESSIONS, [], n_jobs=n_jobs, memory=memory))
    failed = outcomes[1]
    assert str(failed.expression) == TEXTS[1]
    assert failed.score == -np.inf
    reason = "TerminatedWorkerError: " if dies else "RuntimeError: no such luck"
    assert failed.status.startswith(f"the worker failed: {reason}")
    assert "\n" not in failed.status
    others = [bits(outcome) for outcome in outcomes if outcome is not failed]
    assert others == [bits(outcome) for outcome in alone if outcome is not alone[1]]
    assert n_kept(tmp_path) == len(others)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_after_the_deadline_outcomes_are_none_and_not_kept(evaluator, memory, tmp_path, n_jobs):
    workers = partial(
        evaluate_in_parallel, evaluator, n_jobs=n_jobs, memory=memory, deadline=Deadline(0)
    )
    assert list(workers(EXPRESSIONS[:3], [])) == [None] * 3
    assert n_kept(tmp_path) == 0


def test_evaluations_that_are_under_way_end_after_the_deadline():
    # without a deadline the two take a minute
    workers = partial(evaluate_in_parallel, make_evaluator(1500), n_jobs=2, deadline=Deadline(1))
    assert list(workers([parse_expression("SE[0] + SE[0] * LIN[0]"), EXPRESSIONS[4]], [])) == [
        None,
        None,
    ]


@pytest.mark.parametrize("first", [1, 2])
@pytest.mark.parametrize("then", [1, 2])
def test_kept_evaluations_are_found_by_whatever_worker(evaluator, memory, first, then):
    kept = list(evaluate_in_parallel(evaluator, EXPRESSIONS, [], n_jobs=first, memory=memory))
    idle = unlike(evaluator, dies=False)
    found = list(evaluate_in_parallel(idle, EXPRESSIONS, [], n_jobs=then, memory=memory))
    assert list(map(bits, found)) == list(map(bits, kept))
    assert [outcome.seconds for outcome in found] == [outcome.seconds for outcome in kept]


def test_what_is_kept_is_for_one_kernel_and_its_warm_starts(evaluator, alone, memory, tmp_path):
    workers = partial(evaluate_in_parallel, evaluator, memory=memory)
    expression = EXPRESSIONS[2]
    elsewhere = replace(alone[0], theta=alone[0].theta + 0.5)
    for n_different, known in enumerate(([], alone[:1], [elsewhere], alone[:2]), start=1):
        for _ in range(2):
            (outcome,) = workers([expression], known)
            assert bits(outcome) == bits(evaluator(expression, known))
            assert n_kept(tmp_path) == n_different


class Foreign:
    """What another program may have left."""

    def __reduce__(self):
        return int, ("no number",)


CORRUPT = {
    "empty": lambda whole: b"",
    "cut in the middle": lambda whole: whole[: len(whole) // 2],
    "cut at the end": lambda whole: whole[:-1],
    "zeros": lambda whole: bytes(len(whole)),
    "text": lambda whole: b"this is no pickle\n",
    "something else": lambda whole: pickle.dumps({"score": 1.0}),
    "nothing": lambda whole: pickle.dumps(None),
    "a kernel": lambda whole: pickle.dumps(EXPRESSIONS[0]),
    "a class that has gone": lambda whole: whole.replace(b"Parameter", b"Diameter_"),
    "a pickle that raises": lambda whole: pickle.dumps(Foreign()),
    "compressed": lambda whole: b"\x1f\x8b" + whole,
}


@pytest.mark.parametrize("corrupt", CORRUPT.values(), ids=CORRUPT.keys())
def test_what_cannot_be_read_is_evaluated_and_kept_again_without_a_word(
    evaluator, alone, memory, tmp_path, corrupt, capfd
):
    expression = EXPRESSIONS[0]
    list(evaluate_in_parallel(evaluator, [expression], [], memory=memory))
    (file,) = tmp_path.rglob("output.pkl")
    whole = file.read_bytes()
    file.write_bytes(corrupt(whole))
    assert file.read_bytes() != whole
    key = evaluator.key(evaluator.prepare(expression))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Store(memory).load(key, expression) is None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        (outcome,) = evaluate_in_parallel(evaluator, [expression], [], memory=memory)
    assert bits(outcome) == bits(alone[0])
    assert [str(warning.message) for warning in caught] == []
    assert capfd.readouterr() == ("", "")
    assert bits(Store(memory).load(key, expression)) == bits(alone[0])
