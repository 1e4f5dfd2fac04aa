"""The papers' training experiments, small enough to run in seconds."""

from __future__ import annotations

from gonio.papers.experiments.contrastive_training import Contrastive, Training, contrastive
from gonio.papers.experiments.cosine_loss import (
    Descent,
    convergence_bound,
    cosine_change,
    cosine_gradient,
    descent,
    gradient_norm,
    norm_after_step,
)
from gonio.papers.experiments.failure_scenarios import Scenario, Scenarios, scenarios
from gonio.papers.experiments.word2vec import Corpus, WordModels, read_corpus, train_sgns, train_softmax, word_models

__all__ = [
    "Contrastive",
    "Corpus",
    "Descent",
    "Scenario",
    "Scenarios",
    "Training",
    "WordModels",
    "contrastive",
    "convergence_bound",
    "cosine_change",
    "cosine_gradient",
    "descent",
    "gradient_norm",
    "norm_after_step",
    "read_corpus",
    "scenarios",
    "train_sgns",
    "train_softmax",
    "word_models",
]
