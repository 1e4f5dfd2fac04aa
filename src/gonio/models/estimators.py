"""scikit-learn estimators, by the attributes they carry; scikit-learn itself is not imported."""

from __future__ import annotations

from typing import Any

import numpy as np

from gonio.core import checks
from gonio.core.errors import LoadError
from gonio.core.head import Link
from gonio.core.inputs import AllInputs, Box, Inputs, Nonnegative
from gonio.core.row_table import RowTable
from gonio.files.read.head_draft import Draft

FITTED = ("coef_", "coefs_", "feature_log_prob_", "components_", "estimators_", "best_estimator_", "steps")
SOFTMAX = ("LogisticRegression", "LogisticRegressionCV", "LinearDiscriminantAnalysis", "MultinomialNB", "BernoulliNB")
ACTIVATIONS: dict[str, Inputs] = {
    "relu": Nonnegative(),
    "tanh": Box(-1, 1),
    "logistic": Box(0, 1),
    "identity": AllInputs(),
}


def is_estimator(x: Any) -> bool:
    """Whether `x` looks like an estimator of scikit-learn, fitted or not."""
    return any(hasattr(x, a) for a in FITTED) or (hasattr(x, "fit") and hasattr(x, "get_params"))


def of_estimator(x: Any) -> Draft:
    """The head of a fitted estimator."""
    name = type(x).__name__
    if hasattr(x, "best_estimator_"):
        return of_estimator(x.best_estimator_)
    if hasattr(x, "steps"):
        out = of_estimator(x.steps[-1][1])
        if len(x.steps) > 1:
            before = ", ".join(type(step).__name__ for _, step in x.steps[:-1])
            out.decided["inputs"] += f"; in the pipeline they come out of {before}"
        return out
    if hasattr(x, "coefs_") and hasattr(x, "intercepts_"):
        return _perceptron(x, name)
    if hasattr(x, "estimators_") and isinstance(getattr(x, "classes_", None), list):
        return _one_a_column(x, name)
    if hasattr(x, "estimators_") and hasattr(x, "classes_"):
        return _one_against_rest(x, name)
    if hasattr(x, "feature_log_prob_"):
        return _naive_bayes(x, name)
    if hasattr(x, "coef_") and hasattr(x, "classes_"):
        multilabel = _is_multilabel(x)
        return _linear(x, name, np.asarray(_dense(x.coef_)), x.intercept_, _names(x, multilabel), multilabel)
    if hasattr(x, "components_"):
        return _decomposition(x, name)
    if hasattr(x, "coef_"):
        raise LoadError(f"load: a {name} predicts numbers, not labels (it has no classes_); gonio reads classifiers.")
    raise LoadError(f"load: this {name} has no fitted coefficients; call fit first, or pass its last linear layer.")


def _dense(a: Any) -> Any:
    return a.toarray() if hasattr(a, "toarray") else a


def _is_multilabel(x: Any) -> bool:
    if getattr(x, "multilabel_", False):
        return True
    binarizer = getattr(x, "_label_binarizer", None)
    return str(getattr(binarizer, "y_type_", "")).startswith("multilabel")


def _names(x: Any, multilabel: bool) -> list[str]:
    return [str(c) for c in x.classes_]


def _linear(
    x: Any,
    name: str,
    W: np.ndarray,
    bias: Any,
    labels: list[str],
    multilabel: bool,
    inputs: tuple[Inputs, str] | None = None,
) -> Draft:
    """A head from coefficients, with the two-class case that has one row written as two."""
    W = checks.matrix(np.atleast_2d(W), f"load: {name}", "coef_")
    if hasattr(x, "support_vectors_") and len(labels) > 2:
        raise LoadError(
            f"load: the rows of a {name} separate pairs of classes; fit a LinearSVC, which has one row a class."
        )
    b = np.broadcast_to(np.asarray(bias, dtype=np.float64), len(W)).copy()
    halves = len(W) == 1 and len(labels) == 2 and not multilabel
    if halves:
        # One score s for two classes is the softmax of the scores -s/2 and s/2: the same probabilities.
        W = np.vstack([-W / 2, W / 2])
        b = np.concatenate([-b / 2, b / 2])
    if len(labels) != len(W):
        raise LoadError(f"load: this {name} has {len(W)} rows for {len(labels)} classes; gonio needs one row a class.")
    out = Draft(f"a {name}", "scikit-learn", RowTable(W), bias=b if b.any() else None, labels=labels)
    out.decide(
        "weight", "the fitted coefficients" + (", one row for two classes, written as -w/2 and w/2" if halves else "")
    )
    out.decide("bias", "the fitted intercepts" if b.any() else "all intercepts are zero")
    out.decide("labels", "classes_")
    link, why, sure = _link(x, name, multilabel)
    out.link = link
    out.decide("link", why, assumed=not sure)
    if inputs is None:
        inputs = (AllInputs(), "the features are whatever they are; nothing is excluded")
    out.inputs = inputs[0]
    out.decide("inputs", inputs[1])
    out.bytes_read = W.nbytes + b.nbytes
    return out


def _link(x: Any, name: str, multilabel: bool) -> tuple[Link, str, bool]:
    if multilabel:
        return "sigmoid", f"this {name} was fitted on several labels at once", True
    if name in SOFTMAX and getattr(x, "multi_class", "auto") != "ovr":
        return "softmax", f"{name} gives softmax probabilities", True
    return (
        "softmax",
        f"{name} chooses the class of the largest score, as softmax does; its probabilities, if any, differ",
        False,
    )


def _perceptron(x: Any, name: str) -> Draft:
    labels = getattr(x, "classes_", None)
    if labels is None:
        raise LoadError(f"load: a {name} predicts numbers, not labels (it has no classes_); gonio reads classifiers.")
    layers = len(x.coefs_)
    if layers > 1:
        fed = ACTIVATIONS.get(x.activation, AllInputs()), f"the hidden layer's activation is {x.activation}"
    else:
        fed = AllInputs(), "there is no hidden layer; the features are whatever they are"
    sigmoid = getattr(x, "out_activation_", "softmax") == "logistic"
    multilabel = sigmoid and len(x.coefs_[-1].T) > 1
    out = _linear(
        x, name, np.ascontiguousarray(x.coefs_[-1].T), x.intercepts_[-1], _names(x, multilabel), multilabel, fed
    )
    out.decide(
        "weight",
        f"the last of {layers} layers" + ("" if len(x.coefs_[-1].T) > 1 else ", its one row written as -w/2 and w/2"),
    )
    if not multilabel:
        out.decide(
            "link", "the output activation is " + ("logistic over two classes, a softmax" if sigmoid else "softmax")
        )
    return out


def _one_against_rest(x: Any, name: str) -> Draft:
    estimators = list(x.estimators_) if not isinstance(x.estimators_, np.ndarray) else list(x.estimators_.ravel())
    if not all(hasattr(e, "coef_") and np.shape(_dense(e.coef_))[0] == 1 for e in estimators):
        kinds = ", ".join(sorted({type(e).__name__ for e in estimators}))
        raise LoadError(f"load: this {name} is made of {kinds}; gonio reads it only with one linear score a class.")
    W = np.vstack([np.asarray(_dense(e.coef_)) for e in estimators])
    b = np.array([float(np.ravel(e.intercept_)[0]) for e in estimators])
    return _linear(x, name, W, b, [str(c) for c in x.classes_], bool(getattr(x, "multilabel_", False)))


def _one_a_column(x: Any, name: str) -> Draft:
    """A MultiOutputClassifier: one classifier a column of y, each with classes of its own; a yes or no is a label."""
    estimators = list(x.estimators_)
    # A ClassifierChain looks the same, but each of its classifiers also takes the answers of those before it.
    alike = len({np.shape(_dense(e.coef_))[-1] for e in estimators if hasattr(e, "coef_")}) == 1
    linear = all(hasattr(e, "coef_") and np.shape(_dense(e.coef_))[:-1] == (1,) for e in estimators)
    if not (alike and linear and all(np.size(c) == 2 for c in x.classes_)):
        kinds = ", ".join(sorted({type(e).__name__ for e in estimators}))
        raise LoadError(
            f"load: this {name} is made of {kinds}; gonio reads it only with one linear score of the features for two "
            f"classes a column, so load one of its estimators_."
        )
    W = np.vstack([np.atleast_2d(_dense(e.coef_)) for e in estimators])
    b = np.array([float(np.ravel(e.intercept_)[0]) for e in estimators])
    out = _linear(x, name, W, b, [str(i) for i in range(len(W))], True)
    out.decide("labels", "the columns of y, by number")
    return out


def _naive_bayes(x: Any, name: str) -> Draft:
    W, b = np.asarray(x.feature_log_prob_), np.asarray(x.class_log_prior_)
    if name == "MultinomialNB":
        return _linear(x, name, W, b, _names(x, False), False, (Nonnegative(), "the features are counts"))
    if name == "BernoulliNB":
        no = np.log1p(-np.exp(W))
        return _linear(
            x, name, W - no, b + no.sum(axis=1), _names(x, False), False, (Box(0, 1), "the features are 0 or 1")
        )
    raise LoadError(
        f"load: a {name} is not read; of the naive Bayes models MultinomialNB and BernoulliNB are linear heads."
    )


def _decomposition(x: Any, name: str) -> Draft:
    """Items of a factorisation X ~ U components_: one row a column of X."""
    items = np.ascontiguousarray(np.asarray(_dense(x.components_)).T)
    labels = getattr(x, "feature_names_in_", None)
    out = Draft(
        f"a {name}", "scikit-learn", RowTable(items), link="dot", labels=None if labels is None else list(labels)
    )
    out.decide("weight", "components_, turned: one row a column of the data")
    out.decide("link", f"{name} approximates the data by a product of factors")
    penalised = name == "NMF" and (getattr(x, "alpha_W", 0) or getattr(x, "alpha_H", 0) not in (0, "same"))
    out.trained = "factors" if penalised else "product"
    out.decide("trained", f"{name} {'penalises both factors' if penalised else 'fits the product without a penalty'}")
    if name in ("NMF", "MiniBatchNMF", "LatentDirichletAllocation"):
        out.inputs = Nonnegative()
        out.decide("inputs", f"the other factor of {name} is non-negative")
    out.bytes_read = items.nbytes
    return out
