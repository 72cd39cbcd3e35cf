"""Evaluators that travel to other processes, and digests of what an evaluation depends on."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import KFold, TimeSeriesSplit

from autokernel import parse_expression
from autokernel.evidence import CrossValidation, Evaluator, Importance, Job, Laplace
from autokernel.evidence.warm_starts import WarmStart
from autokernel.kernels.parameters import check_priors
from tests.processes import outputs_under_two_hash_seeds

# these tests are about numbers, of rows in no order
pytestmark = pytest.mark.filterwarnings("ignore:TimeSeriesSplit takes rows")

PRIORS = check_priors("paper")
FOLDS = CrossValidation(cv=TimeSeriesSplit(3))

DIGEST_AND_PRINT = """
import pickle
import numpy as np
from autokernel import parse_expression
from autokernel.evidence import Importance
from autokernel.evidence import Evaluator
from autokernel.kernels.parameters import check_priors
X = np.linspace(0, 1, 12).reshape(6, 2)
y = np.array([1.0, -1.0, 2.0, 0.5, 0.0, -2.5])
criterion = Importance(max_draws=200, standard_error=0.5)
evaluator = Evaluator(X, y, priors=check_priors("paper"), seed=0, criterion=criterion)
known = [evaluator(parse_expression(text)) for text in ("SE[0]", "LIN[1]")]
job = evaluator.prepare(parse_expression("SE[0] * PER[0] + LIN[1]"), known)
assert job.warm_starts
print(evaluator.fingerprint(), evaluator.key(job))
print(evaluator.key(evaluator.prepare(parse_expression("SE[0] + LIN[1]"))))
again = pickle.loads(pickle.dumps(evaluator))
print(again.fingerprint(), again.key(pickle.loads(pickle.dumps(job))))
"""

EVALUATE_AND_PRINT = """
import pickle, sys
evaluator, job = pickle.loads(bytes.fromhex("{sent}"))
fit = evaluator.run(job)
print(fit.theta.tobytes().hex(), fit.hessian.tobytes().hex(), fit.score.hex(), fit.n_evaluations)
"""


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(20, 2))
    y = np.sin(12 * X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=20)
    return X, (y - y.mean()) / y.std()


def evaluator(table, **options):
    return Evaluator(*table, **{"priors": PRIORS, "seed": 0, **options})


def read(text):
    return parse_expression(text)


def bits(fit):
    """All of an evaluation but the time that it took."""
    return (
        str(fit.expression),
        fit.theta.tobytes(),
        fit.hessian.tobytes(),
        [fit.score, fit.log_evidence, fit.log_posterior, fit.log_likelihood, fit.log_prior],
        fit.parameters,
        fit.n_evaluations,
        fit.status,
        repr((fit.standard_error, fit.pareto_k)),
    )


def travelled(thing):
    return pickle.loads(pickle.dumps(thing))


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("criterion", ["laplace", Importance(max_draws=300), FOLDS])
def test_an_evaluator_that_has_travelled_gives_the_same_to_the_last_bit(table, criterion, order):
    X, y = table
    subject = evaluator((np.array(X, order=order), y), criterion=criterion)
    other = travelled(subject)
    known = [subject(read("SE[0]"))]
    for text in ("SE[0] * LIN[1]", "LIN[0] + PER[0]"):
        for fits in ([], known):
            one = subject(read(text), fits)
            assert bits(other(read(text), fits)) == bits(one)


def test_jobs_and_evaluations_travel_unchanged(table):
    subject = evaluator(table)
    known = [subject(read(text)) for text in ("SE[0]", "LIN[1]")]
    job = subject.prepare(read("SE[0] * LIN[1]"), known)
    assert job.warm_starts
    fit = subject.run(job)
    assert bits(subject.run(travelled(job))) == bits(fit)
    assert bits(travelled(fit)) == bits(fit)
    assert travelled(fit).seconds == fit.seconds


def test_it_gives_the_same_in_another_process(table):
    subject = evaluator(table, criterion="importance")
    job = subject.prepare(read("LIN[1] + PER[0]"), [subject(read("PER[0]"))])
    fit = subject.run(job)
    script = EVALUATE_AND_PRINT.format(sent=pickle.dumps((subject, job)).hex())
    words = (fit.theta.tobytes().hex(), fit.hessian.tobytes().hex(), fit.score.hex())
    assert outputs_under_two_hash_seeds(script) == {f"{' '.join(words)} {fit.n_evaluations}\n"}


def test_a_process_keeps_one_for_all_its_jobs(table):
    subject, same = evaluator(table), evaluator(table)
    sent = pickle.dumps(subject)
    arrived = pickle.loads(sent)
    assert pickle.loads(sent) is arrived
    assert travelled(same) is arrived
    assert travelled(arrived) is arrived  # and travels on
    assert travelled(evaluator(table, seed=1)) is not arrived


def test_what_travels_is_the_data_and_little_else(table):
    X, y = table
    X, y = np.tile(X, (10, 1)), np.tile(y, 10)  # 200 rows: a covariance takes 160 kB
    subject = evaluator((X, y), criterion="importance")
    subject(read("LIN[0] + PER[0]"))  # what it has computed stays at home
    size = len(pickle.dumps(subject))  # a kilobyte is for names and priors
    assert X.nbytes + y.nbytes < size < X.nbytes + y.nbytes + 1000
    job = subject.prepare(read("SE[0] + LIN[1]"), [subject(read("SE[0]"))])
    assert len(pickle.dumps(job)) < 2000


def changed(table, *, index=0):
    """The data with one number that differs in its last bit."""
    data = [values.copy() for values in table]
    data[index].flat[3] = np.nextafter(data[index].flat[3], np.inf)
    return data


def evaluators(table):
    """Evaluators of which no two are alike."""
    X, y = table
    small = Importance(max_draws=500)
    return [
        evaluator(table),
        evaluator(changed(table, index=0)),
        evaluator(changed(table, index=1)),
        evaluator((X[:, ::-1], y)),
        evaluator((X[:, :1], y)),
        evaluator((X[:-1], y[:-1])),
        evaluator(table, seed=1),
        evaluator(table, priors=check_priors("default")),
        evaluator(table, priors={**PRIORS, "alpha": (2.0, 2.5)}),
        evaluator(table, priors={**PRIORS, "alpha": (2.5, 2.0)}),
        evaluator(table, criterion="importance"),
        evaluator(table, criterion=small),
        evaluator(table, criterion=Importance(max_draws=500, standard_error=0.1)),
        evaluator(table, criterion=Another()),
        evaluator(table, criterion="bic"),
        evaluator(table, criterion="loo"),
        evaluator(table, criterion="cv"),
        evaluator(table, criterion=CrossValidation(cv=4)),
        evaluator(table, criterion=CrossValidation(cv=KFold(4))),
        evaluator(table, criterion=FOLDS),
    ]


class Another(Laplace):
    """A criterion with the parameters of Laplace, none, and another name."""


def test_the_fingerprint_tells_all_apart_that_a_score_depends_on(table):
    fingerprints = [subject.fingerprint() for subject in evaluators(table)]
    assert len(set(fingerprints)) == len(fingerprints)


def test_the_fingerprint_knows_where_the_inputs_end_and_the_targets_begin():
    numbers = np.arange(6.0)
    tall, wide = (numbers[:3, None], numbers[3:]), (numbers[:4].reshape(2, 2), numbers[4:])
    assert evaluator(tall).fingerprint() != evaluator(wide).fingerprint()


def test_the_key_of_a_job_tells_apart_what_the_fingerprint_does(table):
    keys = [subject.key(subject.prepare(read("SE[0]"))) for subject in evaluators(table)]
    assert len(set(keys)) == len(keys)


def test_equal_evaluators_have_one_fingerprint(table):
    X, y = table
    subjects = [
        evaluator(table),
        evaluator((np.asfortranarray(X), y.copy())),
        evaluator(table, criterion=Laplace()),
        travelled(evaluator(table)),
    ]
    several = {**PRIORS, "alpha": (2.0, 2.5), "period": (2.0, 2.5)}
    forth, back = (
        evaluator(table, priors=priors) for priors in (several, dict(reversed(several.items())))
    )
    assert forth.fingerprint() == back.fingerprint()
    folds = [evaluator(table, criterion=clone(FOLDS)) for _ in range(2)]
    assert folds[0].fingerprint() == travelled(folds[1]).fingerprint()
    subjects[0](read("SE[0]"))  # whatever it has computed meanwhile
    assert len({subject.fingerprint() for subject in subjects}) == 1
    job = Job(read("SE[0]"))
    assert len({subject.key(job) for subject in subjects}) == 1


def fit_of(nodes, *numbers):
    return WarmStart(nodes, np.array(numbers))


def test_the_key_tells_expressions_and_where_they_begin_apart(table):
    subject = evaluator(table)
    one, other = fit_of([0], 1.0, 2.0, 3.0), fit_of([1], 1.0, 2.0, 3.0)
    jobs = [
        Job(read("SE[0] + LIN[1]")),
        Job(read("SE[0] * LIN[1]")),
        Job(read("LIN[1] + SE[0]")),  # the same kernel, but its record says how it was written
        Job(read("SE[0] + LIN[1]"), ((one,),)),
        Job(read("SE[0] + LIN[1]"), ((other,),)),
        Job(read("SE[0] + LIN[1]"), ((fit_of([0], 1.0, 2.0, np.nextafter(3.0, 4.0)),),)),
        Job(read("SE[0] + LIN[1]"), ((one._replace(hessian=np.eye(3)),),)),
        Job(read("SE[0] + LIN[1]"), ((one, other),)),
        Job(read("SE[0] + LIN[1]"), ((other, one),)),
        Job(read("SE[0] + LIN[1]"), ((one,), (other,))),
        Job(read("SE[0] + LIN[1]"), ((one,), (one, other), (other,))),
        Job(read("SE[0] + LIN[1]"), ((one, one), (other, other))),
    ]
    keys = [subject.key(job) for job in jobs]
    assert len(set(keys)) == len(keys)
    assert [subject.key(travelled(job)) for job in jobs] == keys


def test_the_key_follows_the_known_fits_that_a_kernel_begins_at_and_the_best_score(table):
    subject = evaluator(table)
    fit, foreign = subject(read("SE[0]")), subject(read("RQ[1]"))
    expression = read("SE[0] + LIN[1]")
    moved = replace(fit, theta=fit.theta + 1e-9)
    worse, better = (replace(foreign, score=fit.score + nats) for nats in (-1, 1))
    keys = [
        subject.key(subject.prepare(expression, known))
        for known in ([], [fit], [moved], [foreign], [fit, worse], [fit, better])
    ]
    assert len(set(keys)) == 4
    assert keys[0] == keys[3]  # nothing in common
    assert keys[1] == keys[4]


def test_digests_do_not_depend_on_the_hash_seed():
    (output,) = outputs_under_two_hash_seeds(DIGEST_AND_PRINT)
    first, second, third = output.splitlines()
    assert first == third  # of what has travelled
    digests = [*first.split(), second]
    assert len(set(digests)) == 3
    assert {len(digest) for digest in digests} == {64}
