# SPDX-License-Identifier: Apache-2.0
"""Make the digits example's files: train once in JAX, write everything.

Not needed to run the example: what it writes is committed. Run it again with

    python make_data.py [FOLDER]

and the same files come out byte for byte with the versions in VERSIONS (it
warns about others). README.md says what each file is.
"""

import json
import os
import platform
import sys
from importlib import metadata
from pathlib import Path

# Set before jax is imported: one processor and one instruction set. XLA splits
# its sums by the number of processors, and then the last bits differ.
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
os.environ["JAX_PLATFORMS"] = "cpu"
if platform.machine() == "x86_64":
    os.environ["XLA_FLAGS"] = "--xla_cpu_max_isa=AVX2"

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from sklearn.datasets import load_digits  # noqa: E402

VERSIONS = {"jax": "0.10.2", "jaxlib": "0.10.2", "numpy": "2.4.6",
            "scikit-learn": "1.9.1"}
SEED = 0
HIDDEN = 64
STEPS = 400
RATE = 0.01
DECAY = 1e-3
HELD_OUT_EVERY = 7  # images 0, 7, 14, ... are never trained on: 257 of 1,797
ALIGN = 64  # what PJRT CPU plugins ask of memory that they alias

# The order of the tensors in weights.safetensors and of the program's
# arguments; the images follow as the last argument. Each but the last is a
# multiple of ALIGN bytes long, so all of them start aligned.
PARAMETERS = {
    "hidden.weight": (64, HIDDEN),
    "hidden.bias": (HIDDEN,),
    "output.weight": (HIDDEN, 10),
    "output.bias": (10,),
}


def logits(parameters, images):
    """The network: one hidden layer of 64 rectified units."""
    w1, b1, w2, b2 = parameters
    hidden = jnp.maximum(images * (1 / 16) @ w1 + b1, 0)
    return hidden @ w2 + b2


def digits(w1, b1, w2, b2, images):
    """The program: probabilities of the ten digits, and the likeliest."""
    scores = jax.nn.softmax(logits((w1, b1, w2, b2), images))
    return scores, jnp.argmax(scores, axis=1).astype(jnp.int32)


def initial_parameters():
    """Scaled normal weights from SEED, zero biases."""
    keys = jax.random.split(jax.random.key(SEED), len(PARAMETERS))
    return tuple(
        jax.random.normal(key, shape) * np.float32((2 / shape[0]) ** 0.5)
        if len(shape) == 2 else jnp.zeros(shape)
        for key, shape in zip(keys, PARAMETERS.values()))


@jax.jit
def train(images, labels):
    """Adam on the whole training set at once, STEPS times."""
    def loss(parameters):
        chosen = jnp.take_along_axis(
            jax.nn.log_softmax(logits(parameters, images)),
            labels[:, None], axis=1)
        size = sum(jnp.sum(p * p) for p in parameters)
        return -jnp.mean(chosen) + DECAY * size

    def step(state, number):
        parameters, mean, square = state
        gradient = jax.grad(loss)(parameters)
        mean = tuple(0.9 * m + 0.1 * g for m, g in zip(mean, gradient))
        square = tuple(0.999 * s + 0.001 * g * g
                       for s, g in zip(square, gradient))
        m_scale = 1 / (1 - 0.9 ** number)
        s_scale = 1 / (1 - 0.999 ** number)
        parameters = tuple(
            p - RATE * m * m_scale / (jnp.sqrt(s * s_scale) + 1e-8)
            for p, m, s in zip(parameters, mean, square))
        return (parameters, mean, square), None

    first = initial_parameters()
    zeros = tuple(jnp.zeros_like(p) for p in first)
    numbers = jnp.arange(1, STEPS + 1, dtype=jnp.float32)
    (parameters, _, _), _ = jax.lax.scan(step, (first, zeros, zeros), numbers)
    return parameters


def safetensors_bytes(tensors):
    """A .safetensors file whose every tensor starts at a multiple of ALIGN."""
    header, offset = {}, 0
    for name, array in tensors.items():
        assert array.dtype == np.float32 and offset % ALIGN == 0, name
        header[name] = {"dtype": "F32", "shape": list(array.shape),
                        "data_offsets": [offset, offset + array.nbytes]}
        offset += array.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-(8 + len(text)) % ALIGN)
    data = b"".join(array.tobytes() for array in tensors.values())
    return len(text).to_bytes(8, "little") + text + data


def warn_of_other_versions():
    for name, wanted in VERSIONS.items():
        found = metadata.version(name)
        if found != wanted:
            print(f"note: {name} {found} is not the {wanted} that made the "
                  "committed files; bytes may differ", file=sys.stderr)


def main():
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent)
    folder.mkdir(parents=True, exist_ok=True)
    warn_of_other_versions()

    data = load_digits()
    images = data.data.astype(np.float32)
    labels = data.target.astype(np.int32)
    held_out = np.arange(len(images)) % HELD_OUT_EVERY == 0

    trained = train(images[~held_out], labels[~held_out])
    parameters = {name: np.asarray(value)
                  for name, value in zip(PARAMETERS, trained)}

    program = jax.jit(digits)
    arguments = (*parameters.values(), images)
    scores, predicted = map(np.asarray, program(*arguments))

    (folder / "weights.safetensors").write_bytes(safetensors_bytes(parameters))
    (folder / "digits.mlir").write_text(program.lower(*arguments).as_text())
    np.save(folder / "images.npy", images)
    np.save(folder / "labels.npy", labels)
    np.save(folder / "expected_scores.npy", scores)
    np.save(folder / "expected_labels.npy", predicted)

    right = predicted == labels
    for words, which in (("trained on", ~held_out), ("held out", held_out)):
        print(f"{words}: {right[which].sum()} of {which.sum()} images right, "
              f"{right[which].mean():.2%}")


if __name__ == "__main__":
    main()
