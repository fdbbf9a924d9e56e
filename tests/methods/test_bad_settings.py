"""Settings of methods that are refused: one of each kind, with the argument and what is allowed."""

from __future__ import annotations

from bad_calls import bad_calls, refuses

from fsjax.methods import METHODS

NAN = float("nan")
ONE_NEEDED = "a sparse network needs one of them"


@bad_calls(
    # Ranges and types, which annotations say.
    ("ip_cae", {"num_features": 0}, "num_features=0", "at least 1"),
    ("ip_cae", {"num_features": 2.5}, "num_features=2.5", "whole number"),
    ("ip_cae", {"dropout": 1.0}, "dropout=1.0", "from 0 to below 1"),
    ("ip_cae", {"temperature_start": 0.0}, "temperature_start=0.0", "above 0"),
    ("ip_cae", {"dropout": None}, "dropout=None; choose a finite number"),
    ("ip_cae", {"learning_rate": True}, "learning_rate=True; choose a finite number"),
    ("ip_cae", {"bias": "no"}, "bias='no'; choose True or False"),
    ("ip_cae", {"temperature_end": 20.0}, "temperature_end=20.0 is above"),
    ("stg", {"final_learning_rate": "a"}, "choose a finite number, or None"),
    ("deep_lasso", {"penalty": -1.0}, "penalty=-1.0; choose a value from 0"),
    ("dufs", {"walk_steps": 0}, "walk_steps=0"),
    ("l1_l21", {"penalty": -1.0}, "penalty=-1"),
    ("laplacian_score", {"num_neighbors": 0}, "num_neighbors=0"),
    ("lassonet", {"num_features": 4, "path_multiplier": 1.0}, "path_multiplier=1.0", "above 1"),
    ("lassonet", {"num_features": 4, "path_epochs": 1.5}, "path_epochs=1.5"),
    ("neural_network", {"hidden": 8}, "hidden=8"),
    ("probmask", {"max_norm": 0.0}, "max_norm"),
    ("rfs", {"penalty": 0.0}, "penalty=0"),
    ("set", {"hidden": ()}, "hidden is empty"),
    ("set", {"hidden": (5, 2.5)}, "a width of hidden=2.5; choose a whole number"),
    ("set", {"l2": float("inf")}, "l2=inf; choose a finite number"),
    ("wast", {"density": 1.5}, "density=1.5"),
    ("wast", {"input_noise": NAN}, "input_noise=nan"),
    # Names, with the nearest.
    ("aefs", {"activation": "relu"}, "activation='relu'"),
    ("binmask", {"masked": "input"}, "did you mean 'inputs'"),
    ("ctre_seq", {"order": "similar"}, "did you mean 'similar_first'"),
    ("ctre_sim", {"grow": "similiar"}, "did you mean 'similar'"),
    ("ctre_sim", {"similarity": "cosinus"}, "did you mean 'cosine'"),
    ("dufs", {"loss": "product"}, "loss='product'"),
    ("icap", {"redundancy": "mean"}, "redundancy='mean'"),
    ("ip_cae", {"noise": "rows"}, "did you mean 'row'"),
    ("laplacian_score", {"metric": "manhattan"}, "metric='manhattan'"),
    ("neural_network", {"network": "lenet"}, "did you mean 'lenet5'"),
    ("neural_network", {"optimizer": "sdg"}, "did you mean 'sgd'"),
    ("neural_network", {"activation": "tan"}, "did you mean 'tanh'"),
    ("probmask", {"evaluation": "mean"}, "evaluation='mean'"),
    ("quick_selection", {"initialisation": "glorott"}, "did you mean 'glorot'"),
    ("set", {"drop": "magnitudes"}, "did you mean 'magnitude'"),
    ("set", {"grow_init": "zero"}, "did you mean 'zeros'"),
    ("stg", {"penalty": "max"}, "penalty='max'"),
    ("wast", {"update": "steps"}, "did you mean 'step'"),
    # Arguments that do not fit each other, or the method.
    ("aefs", {"hidden": (6, 5)}, "aefs has one hidden layer"),
    ("binmask", {"strength": 0.0}, "search cannot start"),
    ("binmask", {"finetune_epochs": 2}, "needs masked='weights'"),
    ("lassonet", {"num_features": 4, "until": 5}, "until=5 is above num_features=4"),
    ("probmask", {"sparsify_start": 0.7}, "sparsify_start"),
    ("probmask", {"sparsify_end": 1.0}, "sparsify_end"),
    ("set", {"density": 0.1}, "epsilon=5.0 and density=0.1"),
    ("set", {"epsilon": 0, "density": 0}, ONE_NEEDED),
    ("snip", {"epsilon": None}, ONE_NEEDED),
    ("static_sparse", {"epsilon": 0}, ONE_NEEDED),
    ("wast", {"hidden": (6, 5)}, "wast has one hidden layer"),
)
def test_bad_settings_are_named(bad: tuple) -> None:
    refuses(lambda: METHODS[bad[0]](**bad[1]), *bad[2:])
