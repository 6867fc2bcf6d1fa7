"""Draws docs/picture.svg: `python3 docs/picture.py target/release/msbdl` (needs matplotlib)."""

import json
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib

matplotlib.use("svg")
matplotlib.rcParams["svg.hashsalt"] = "msbdl"
import matplotlib.pyplot as plt

BINARY = Path(sys.argv[1]).resolve()
NAMES = {"mod1": "30 dB", "mod2": "20 dB", "mod3": "10 dB"}


def run(folder, *words):
    return subprocess.run([BINARY, *words], cwd=folder, check=True, capture_output=True).stdout


def history(path):
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    return json.loads(json.loads(data[8 : 8 + length])["__metadata__"]["msbdl"])["history"]


with tempfile.TemporaryDirectory() as folder:
    run(folder, "synth", "--recipe", "trimodal", "--seed", "0", "--out", "truth")
    files = [word for name in NAMES for word in ("--modality", f"{name}=truth/{name}.npy")]
    run(folder, "fit", *files, "--atoms", "50", "--out", "m.safetensors", "--quiet")
    found = json.loads(
        run(folder, "recovery", "--model", "m.safetensors", "--truth", "truth", "--limit", "--json")
    )
    past = history(Path(folder) / "m.safetensors")

truth = {x["name"]: x for x in found["modalities"]}
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.4), width_ratios=(2, 1))
for j, (name, label) in enumerate(NAMES.items()):
    sigma = [facts["sigma"][j] for facts in past]
    (line,) = left.semilogy([facts["e_steps"] for facts in past], sigma, label=label, lw=1.5)
    true = truth[name]["sigma2_true"] ** 0.5
    left.axhline(true, color=line.get_color(), ls=":", lw=1)
stage = None
for facts in past:
    if facts["stage"] != stage:
        stage = facts["stage"]
        left.axvline(facts["e_steps"], color="0.85", lw=0.8, zorder=0)
        top = left.get_xaxis_transform()
        left.text(facts["e_steps"] + 2, 0.99, stage, transform=top, rotation=90, va="top", size=7)
left.set(xlabel="passes over the data", ylabel="noise sigma", title="Noise found (dotted: true)")
left.legend(frameon=False, loc="lower left")
for shift, key, label, color in [(-0.2, "recovery", "found", "C0"), (0.2, "limit", "limit", "0.8")]:
    heights = [100 * truth[name][key] for name in NAMES]
    right.bar([j + shift for j in range(len(NAMES))], heights, 0.38, label=label, color=color)
right.set_xticks(range(len(NAMES)), NAMES.values())
right.set(ylim=(0, 108), ylabel="true atoms recovered, %", title="Three modalities, 50 atoms each")
right.legend(loc="lower center", ncols=2)
for axes in (left, right):
    axes.spines[["top", "right"]].set_visible(False)
figure.tight_layout()
figure.savefig(Path(__file__).with_name("picture.svg"), metadata={"Date": None})
if len(sys.argv) > 2:
    figure.savefig(sys.argv[2], dpi=110)
