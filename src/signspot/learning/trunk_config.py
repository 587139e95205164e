"""Every option of a training run of the trunk, with the paper's value as its default.

The paper says little about this training and follows "the procedure described in" its reference [BSL-1K] (Paper 3.2);
where it is silent, the default is that of the released trainer of that work.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from signspot.domain.tracks import FrameShape
from signspot.learning.clip_files import ClipOptions
from signspot.learning.clips import ClipWindow
from signspot.learning.config import LARGEST, decayed, refuse_outside, refuse_run_options
from signspot.learning.landmark_changes import LandmarkAugmentation
from signspot.media.transforms import Augmentation

_LEARNABLE_SEED = 2**32 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class TrunkRunConfig:
    """Everything that changes what a run of `signspot train trunk` learns."""

    # The network
    architecture: Literal["i3d", "s3d", "landmark"] = "i3d"  # Paper 3.2; S3D in App. B.7; landmarks are ours
    width: float = 1.0  # of I3D and S3D: times the channels of every layer
    gated: bool = False  # S3D-G; the paper names S3D (App. B.7)
    landmark_width: int = 256  # of a frame's vector in the landmark encoder
    embedding_dim: int = 1024  # of the landmark encoder; I3D and S3D have 1024 times their width
    initial_model: Path | None = None  # a model of the same architecture to start from, such as the released trunk

    # What it sees (Paper 3.2; released trainer)
    side: int = 256  # pixels, of the scaled frame
    crop: int = 224  # pixels, of what is cut out of it
    keep_aspect: bool = True  # scale the shorter side and cut the middle; False: squash, as the released trainer does
    signer_box: bool = True  # look at the square around the signer, in recordings whose manifest says where that is
    colour_jitter: float = 0.2  # each channel times U(1 - jitter, 1 + jitter)
    scale_jitter: float = 0.1
    flip_probability: float = 0.5  # of pixels and landmarks alike
    rotation_degrees: float = 10.0  # of landmarks, as all that follow
    stretch_jitter: float = 0.1
    speed_jitter: float = 0.2
    hand_dropout: float = 0.1

    # What it learns from (Paper App. C.1)
    sources: Literal["both", "dictionary", "continuous"] = "both"  # Tab. 2, "I3D-both", "-BSLDict", "-BSL1K"
    window_before: int = 20  # frames before an annotation in which a clip lies (App. B.7: "the last 20 frames")
    window_after: int = 0  # 5: the whole tolerance of Paper 4.2
    stage1_confidence: float = 0.5  # of the annotations when learning from them alone
    stage2_confidence: float = 0.8  # and jointly with the dictionary
    dictionary_sampling: Literal["random", "consecutive"] = "random"  # consecutive: 6.68 % worse (App. C.1)
    reinitialise_batch_norm: bool = True  # before stage 2; without: 48.09 % instead of 78.94 % (App. C.1)
    domain_specific_batch_norm: bool = False  # in stage 2: 62.73 % (App. C.1)

    # Optimisation (Paper 3.2; released trainer)
    pose_epochs: int = 0  # of regressing the landmarks before stage 1 (App. C.1, "pose distillation")
    stage1_epochs: int = 50
    stage2_epochs: int = 50
    decay_epochs: tuple[int, ...] = (20, 40)  # of each stage: the learning rate is divided by ten after these
    steps_per_epoch: int = 0  # 0: as many as show every clip of the larger source once
    batch_size: int = 4  # Paper 3.2
    optimiser: Literal["sgd", "adamw"] = "sgd"  # adamw: ours, for pose distillation in few steps
    learning_rate: float = 1e-2
    momentum: float = 0.9  # of sgd
    weight_decay: float = 0.0
    batch_norm_momentum: float = 0.01  # released; more for runs of a few hundred steps, whose statistics lag behind
    seed: int = 0
    evaluate_every: int = 1  # epochs; 0: only at the end

    # The machine
    device: str = "cpu"  # cpu, cuda, cuda:1, mps
    precision: Literal["auto", "float32", "mixed"] = "auto"  # auto: mixed (bfloat16) where a GPU computes in it
    threads: int = 0  # 0: as many as torch chooses; a run continues with as many as it began with

    def __post_init__(self) -> None:
        for name in ("batch_size", "landmark_width", "embedding_dim"):
            refuse_outside(name, getattr(self, name), 1, LARGEST)
        for name in ("pose_epochs", "stage1_epochs", "stage2_epochs", "steps_per_epoch", "evaluate_every", "threads"):
            refuse_outside(name, getattr(self, name), 0, LARGEST)
        refuse_outside("seed", self.seed, 0, _LEARNABLE_SEED)
        for name in ("stage1_confidence", "stage2_confidence", "batch_norm_momentum"):
            refuse_outside(name, getattr(self, name), 0, 1)
        refuse_outside("momentum", self.momentum, 0, 0.9999)
        for name in ("learning_rate", "weight_decay"):
            refuse_outside(name, getattr(self, name), 0, LARGEST)
        refuse_outside("width", self.width, 1e-3, 4)
        refuse_run_options(self.decay_epochs, self.device)
        self._refuse_contradictions()
        # What is made of the options refuses the rest.
        _ = self.frame_shape, self.clip_window, self.augmentation, self.landmark_augmentation

    @property
    def frame_shape(self) -> FrameShape:
        """The size of the frames the trunk takes."""
        return FrameShape(self.side, self.crop, self.keep_aspect, self.signer_box)

    @property
    def clip_window(self) -> ClipWindow:
        """Where the clips of an annotation lie."""
        return ClipWindow(before=self.window_before, after=self.window_after)

    @property
    def clip_options(self) -> ClipOptions:
        """Which clips of a corpus and a dictionary the run needs."""
        confidences = [self.stage1_confidence] + ([self.stage2_confidence] if self.sources == "both" else [])
        return ClipOptions(window=self.clip_window, min_confidence=min(confidences), sampling=self.dictionary_sampling)

    @property
    def augmentation(self) -> Augmentation:
        """The random changes of clips of pixels."""
        return Augmentation(
            crop=self.crop,
            flip_probability=self.flip_probability,
            colour_jitter=self.colour_jitter,
            scale_jitter=self.scale_jitter,
        )

    @property
    def landmark_augmentation(self) -> LandmarkAugmentation:
        """The random changes of clips of landmarks."""
        return LandmarkAugmentation(
            mirror_probability=self.flip_probability,
            rotation_degrees=self.rotation_degrees,
            stretch_jitter=self.stretch_jitter,
            speed_jitter=self.speed_jitter,
            hand_dropout=self.hand_dropout,
        )

    def learning_rate_in(self, epoch: int) -> float:
        """The learning rate of an epoch of a stage, counted from 0.

        >>> [round(TrunkRunConfig().learning_rate_in(epoch), 9) for epoch in (0, 19, 20, 40)]
        [0.01, 0.01, 0.001, 0.0001]
        """
        return decayed(self.learning_rate, self.decay_epochs, epoch)

    def _refuse_contradictions(self) -> None:
        is_landmark = self.architecture == "landmark"
        if is_landmark and (self.pose_epochs or self.domain_specific_batch_norm):
            raise ValueError("pose_epochs and domain_specific_batch_norm need architecture i3d or s3d")
        if self.gated and self.architecture != "s3d":
            raise ValueError("gated = true needs architecture s3d")
        if self.sources == "both" and self.batch_size % 2:
            raise ValueError(f"batch_size = {self.batch_size} cannot be halved between the two sources")
        if self.domain_specific_batch_norm and self.sources != "both":
            raise ValueError("domain_specific_batch_norm needs both sources")
