"""scikit-learn estimators: the head predicts what the estimator predicts."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_classification, make_multilabel_classification
from sklearn.decomposition import NMF, TruncatedSVD
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LinearRegression, LogisticRegression, Perceptron, RidgeClassifier, SGDClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier
from sklearn.naive_bayes import BernoulliNB, GaussianNB, MultinomialNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

import gonio
from gonio import AllInputs, Box, GonioError, Nonnegative

pytestmark = pytest.mark.filterwarnings("ignore")  # scikit-learn's own

X, y = load_iris(return_X_y=True)
X = X / X.max(axis=0)
names = np.array(["setosa", "versicolor", "virginica"])[y]
two = X[y < 2], names[y < 2]
several, sets = make_multilabel_classification(200, 6, n_classes=4, random_state=0)


@pytest.mark.parametrize(
    "estimator", [LogisticRegression(), LinearDiscriminantAnalysis(), MultinomialNB(), BernoulliNB(binarize=0.5)]
)
@pytest.mark.parametrize("data", [(X, names), two], ids=["three classes", "two classes"])
def test_probabilities_are_the_estimators_own(estimator, data):
    fitted = estimator.fit(*data)
    head = gonio.load(fitted)
    F = data[0] if not isinstance(fitted, BernoulliNB) else (data[0] > 0.5).astype(float)
    assert np.allclose(head.probabilities(F), fitted.predict_proba(data[0]), atol=1e-9)
    assert head.labels == tuple(fitted.classes_)
    assert "link" not in head.source.assumed


@pytest.mark.parametrize(
    "estimator",
    [SGDClassifier(random_state=0), LinearSVC(), RidgeClassifier(), Perceptron(random_state=0), OneVsRestClassifier(LogisticRegression()),
     OneVsRestClassifier(LinearSVC())],
    ids=lambda e: type(e).__name__,
)  # fmt: skip
@pytest.mark.parametrize("data", [(X, names), two], ids=["three classes", "two classes"])
def test_the_winner_is_the_estimators_own(estimator, data):
    fitted = estimator.fit(*data)
    head = gonio.load(fitted)
    assert np.array_equal(np.array(head.labels)[head.logits(data[0]).argmax(axis=1)], fitted.predict(data[0]))
    assert "link" in head.source.assumed


@pytest.mark.parametrize("activation", ["relu", "tanh", "logistic", "identity"])
@pytest.mark.parametrize(
    "data", [(X, names), two, (several, sets)], ids=["three classes", "two classes", "several labels"]
)
def test_the_last_layer_of_a_network_gets_its_activation_as_inputs(activation, data):
    fitted = MLPClassifier((7, 5), activation=activation, max_iter=30, random_state=0).fit(*data)
    head = gonio.load(fitted)
    fed = {"relu": Nonnegative, "tanh": Box, "logistic": Box, "identity": AllInputs}[activation]
    assert type(head.inputs) is fed
    act = {
        "relu": lambda z: np.maximum(z, 0),
        "tanh": np.tanh,
        "logistic": lambda z: 1 / (1 + np.exp(-z)),
        "identity": lambda z: z,
    }
    F = data[0]
    for W, b in zip(fitted.coefs_[:-1], fitted.intercepts_[:-1], strict=True):
        F = act[activation](F @ W + b)
    assert head.inputs.contains(F).all()
    assert np.allclose(head.probabilities(F), fitted.predict_proba(data[0]), atol=1e-9)
    assert head.link == ("sigmoid" if data[1] is sets else "softmax")


@pytest.mark.parametrize(
    "estimator",
    [
        OneVsRestClassifier(LogisticRegression()),
        RidgeClassifier(),
        MultiOutputClassifier(LogisticRegression()),
        MultiOutputClassifier(SVC(kernel="linear")),
    ],
)
def test_several_labels_at_once_are_a_sigmoid_head(estimator):
    fitted = estimator.fit(several, sets)
    head = gonio.load(fitted)
    assert head.link == "sigmoid"
    assert np.array_equal(head.logits(several) > 0, fitted.predict(several).astype(bool))


def test_one_classifier_a_column_is_a_label_a_column():
    fitted = MultiOutputClassifier(LogisticRegression()).fit(several, sets)
    head = gonio.load(fitted)
    assert head.labels == ("0", "1", "2", "3")
    own = np.stack([p[:, 1] for p in fitted.predict_proba(several)], axis=1)
    assert np.allclose(head.probabilities(several), own, atol=1e-9)


def test_pipelines_and_searches_lead_to_their_last_step():
    pipe = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, names)
    head = gonio.load(pipe)
    assert np.allclose(head.probabilities(pipe[:-1].transform(X)), pipe.predict_proba(X))
    assert "StandardScaler" in head.source.decided["inputs"]
    search = GridSearchCV(LogisticRegression(), {"C": [1, 2]}).fit(X, names)
    assert gonio.load(search).shape == (3, 4)


def test_sparse_coefficients_are_read():
    fitted = SGDClassifier(penalty="l1", random_state=0).fit(X, names).sparsify()
    assert gonio.load(fitted).shape == (3, 4)


def test_factorisations_are_dot_heads_over_items():
    counts = np.abs(make_classification(60, 12, random_state=0)[0])
    for model in (TruncatedSVD(3, random_state=0), NMF(3, random_state=0, init="nndsvda")):
        users = model.fit_transform(counts)
        head = gonio.load(model)
        assert head.shape == (12, 3)
        assert head.link == "dot"
        assert head.trained == "product"
        assert np.allclose(head.logits(users), users @ model.components_)
    assert type(head.inputs) is Nonnegative
    assert gonio.load(NMF(3, alpha_W=0.1, init="nndsvda").fit(counts)).trained == "factors"


def test_estimators_without_label_rows_are_refused():
    for estimator, said in (
        (LinearRegression().fit(X, y), "predicts numbers"),
        (GaussianNB().fit(X, y), "no fitted coefficients"),
        (LogisticRegression(), "call fit first"),
        (OneVsRestClassifier(GaussianNB()).fit(X, y), "made of GaussianNB"),
        (MultiOutputClassifier(GaussianNB()).fit(several, sets), "one linear score of the features for two classes"),
        (MultiOutputClassifier(LogisticRegression()).fit(X, np.stack([y, y > 0], 1)), "made of LogisticRegression"),
        (ClassifierChain(LogisticRegression()).fit(several, sets), "one linear score of the features"),
        (SVC(kernel="linear").fit(X, y), "separate pairs of classes"),  # three pairs of three classes: the count fits
    ):
        with pytest.raises(GonioError, match=said):
            gonio.load(estimator)
