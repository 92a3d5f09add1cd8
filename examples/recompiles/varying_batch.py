"""The last batch of a data set is shorter. Fixed: it is padded to the size of the others, and the padding taken off again."""

import sys

import torch

import minidynamo

SIZE = 4


@minidynamo.optimize("eager")
def score(batch):
    return torch.relu(batch).sum(1)


def main(fixed: bool) -> torch.Tensor:
    data = torch.arange(30.0).reshape(10, 3) - 15
    out = []
    for batch in data.split(SIZE):
        count = len(batch)
        if fixed:
            batch = torch.nn.functional.pad(batch, (0, 0, 0, SIZE - count))
        out.append(score(batch)[:count])
    return torch.cat(out)


if __name__ == "__main__":
    main(fixed="--fixed" in sys.argv)
