"""The tables of Figures 1 to 6: steps to result against batch size."""

from __future__ import annotations

from collections.abc import Sequence

from batchlab.plots.paper.figure import PaperFigure
from batchlab.plots.paper.lines import (
    MAIN_LINES,
    NESTEROV,
    PRECISION_ABOVE,
    Line,
    entropy_below,
    error_below,
    transformer,
)
from batchlab.plots.paper.steps import StepsPanel


def _goals_panel(title: str, workload: str, goals: Sequence[str]) -> StepsPanel:
    lines = tuple(Line(f"goal {goal.split()[-1]}", workload, goal) for goal in goals)
    return StepsPanel(title=title, lines=lines, is_ordered=True)


def _compared_panel(title: str, normalise_at: int | None, perfect_of: str, *lines: Line) -> StepsPanel:
    return StepsPanel(title=title, lines=lines, normalise_at=normalise_at, perfect_of=perfect_of)


def _fully_connected(widths: str) -> Line:
    return Line(f"FC-{widths.replace('_', '-')}", f"mnist/fc_{widths}/sgd", error_below(0.03))


def _simple_cnn(label: str, size: str, goal: float, optimizer: str = "sgd") -> Line:
    return Line(label, f"mnist/simple_cnn_{size}/{optimizer}", error_below(goal))


def _mnist_subset(label: str, num_images: int) -> Line:
    return Line(label, f"mnist_subsets/mnist_{num_images}/simple_cnn_base/nesterov_momentum", error_below(0.02))


def _image_net(label: str, base: str, goal: float) -> Line:
    return Line(f"{label}, {goal:g}", f"{base}/resnet_50/nesterov_momentum", error_below(goal))


FIGURE_1 = PaperFigure(
    caption="Steps to result against batch size for nine workloads, trained with Nesterov momentum.",
    columns=3,
    panels=tuple(StepsPanel(title=title, lines=(line,), perfect_of=NESTEROV) for title, line in MAIN_LINES.items()),
)


FIGURE_2 = PaperFigure(
    caption="Steps to result against batch size for several goals of the validation error or cross entropy.",
    columns=3,
    panels=(
        _goals_panel(
            "Simple CNN on MNIST",
            "mnist/simple_cnn_base/nesterov_momentum",
            [error_below(goal) for goal in (0.008, 0.01, 0.012, 0.014, 0.016)],
        ),
        _goals_panel(
            "Transformer on LM1B",
            "lm1b/transformer_base/nesterov_momentum",
            [entropy_below(goal) for goal in (3.8, 3.85, 3.9, 3.95, 4.0, 4.05)],
        ),
        _goals_panel(
            "ResNet-50 on ImageNet",
            "imagenet/resnet_50/nesterov_momentum",
            [error_below(goal) for goal in (0.25, 0.27, 0.29, 0.31)],
        ),
    ),
)


FIGURE_3 = PaperFigure(
    caption="Steps to result of different models on the same data, relative to the steps at one batch size.",
    columns=2,
    panels=(
        _compared_panel(
            "Fully connected vs simple CNN on MNIST",
            1,
            "FC-1024-1024-1024",
            _fully_connected("1024_1024_1024"),
            _simple_cnn("Simple CNN", "base", 0.03),
        ),
        _compared_panel(
            "ResNet-50 vs VGG-11 on ImageNet",
            64,
            "ResNet-50",
            Line("ResNet-50", "imagenet/resnet_50/nesterov_momentum", error_below(0.35)),
            Line("VGG-11", "imagenet/vgg_11/nesterov_momentum", error_below(0.35)),
        ),
        _compared_panel(
            "Transformer vs LSTM on LM1B",
            16,
            "Transformer",
            transformer("Transformer", "base", 3.9),
            Line("LSTM", "lm1b/lstm/nesterov_momentum", entropy_below(3.9)),
        ),
        _compared_panel(
            "Fully connected sizes on MNIST",
            2,
            "FC-1024-1024-1024",
            _fully_connected("1024"),
            _fully_connected("128_128_128"),
            _fully_connected("256_256_256"),
            _fully_connected("512_512_512"),
            _fully_connected("1024_1024_1024"),
            _fully_connected("2048_2048_2048"),
        ),
        _compared_panel(
            "Simple CNN sizes on MNIST",
            2,
            "Base",
            _simple_cnn("Base", "base", 0.01),
            _simple_cnn("Narrow", "narrow", 0.01),
            _simple_cnn("Wide", "wide", 0.01),
        ),
        _compared_panel(
            "Transformer sizes on LM1B",
            16,
            "Base",
            transformer("Wide", "wide", 4.2),
            transformer("Base", "base", 4.2),
            transformer("Shallow", "shallow", 4.2),
            transformer("Narrow and shallow", "narrow_and_shallow", 4.2),
        ),
    ),
)


FIGURE_4 = PaperFigure(
    caption="Steps to result with plain SGD, momentum and Nesterov momentum.",
    columns=3,
    panels=(
        _compared_panel(
            "Simple CNN on MNIST",
            None,
            NESTEROV,
            _simple_cnn("SGD", "base", 0.01),
            _simple_cnn("Momentum", "base", 0.01, "momentum"),
            _simple_cnn(NESTEROV, "base", 0.01, "nesterov_momentum"),
        ),
        _compared_panel(
            "Transformer shallow on LM1B",
            None,
            NESTEROV,
            transformer("SGD", "shallow", 3.9, "sgd"),
            transformer("Momentum", "shallow", 3.9, "momentum"),
            transformer(NESTEROV, "shallow", 3.9),
        ),
        _compared_panel(
            "ResNet-8 on CIFAR-10",
            None,
            NESTEROV,
            Line("SGD", "cifar_10/resnet_8/sgd", error_below(0.3)),
            Line(NESTEROV, "cifar_10/resnet_8/nesterov_momentum", error_below(0.3)),
        ),
    ),
)


FIGURE_5 = PaperFigure(
    caption="Steps to result of the same model on different data, each at its own goal, relative to one batch size.",
    columns=3,
    panels=(
        _compared_panel(
            "Simple CNN",
            2,
            "MNIST, 0.01",
            Line("MNIST, 0.01", "mnist/simple_cnn_base/nesterov_momentum", error_below(0.01)),
            Line("Fashion MNIST, 0.1", "fashion_mnist/simple_cnn_base/nesterov_momentum", error_below(0.1)),
        ),
        _compared_panel(
            "ResNet-50",
            128,
            "ImageNet, 0.25",
            _image_net("ImageNet", "imagenet", 0.25),
            Line("Open Images, 0.31", "open_images_v4/resnet_50/nesterov_momentum", PRECISION_ABOVE),
        ),
        _compared_panel(
            "Transformer",
            32,
            "LM1B, 3.9",
            transformer("LM1B, 3.9", "base", 3.9),
            Line("Common Crawl, 3.9", "common_crawl/transformer_base/nesterov_momentum", entropy_below(3.9)),
        ),
    ),
)


FIGURE_6 = PaperFigure(
    caption="Steps to result on subsets of the training data, relative to the steps at one batch size.",
    columns=2,
    panels=(
        _compared_panel(
            "Simple CNN on MNIST subsets",
            2,
            "100% of images, 0.02",
            _mnist_subset("100% of images, 0.02", 55_000),
            _mnist_subset("50% of images, 0.02", 27_500),
            _mnist_subset("25% of images, 0.02", 13_750),
            _mnist_subset("12.5% of images, 0.02", 6_875),
        ),
        _compared_panel(
            "ResNet-50 on ImageNet subsets",
            64,
            "100% of images, 0.25",
            _image_net("100% of images", "imagenet", 0.25),
            _image_net("50% of images", "imagenet_subsets/imagenet_half_images", 0.3),
            _image_net("50% of classes", "imagenet_subsets/imagenet_half_classes", 0.3),
        ),
    ),
)
