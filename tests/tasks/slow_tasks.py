"""Slow plain re-implementations that the tasks are compared with, written without looking at how the tasks do it."""

import math
from collections import deque

import numpy as np

REACH = 10.001  # the robot's radius and the skin it keeps from walls
MOVES = [(-1, 0), (0, 1), (1, 0), (0, -1), (0, 0)]


def cut(vector, shapes):
    """Weights (inputs, outputs) and biases of each layer, in the documented order."""
    vector, layers = list(map(float, vector)), []
    for inputs, outputs in shapes:
        weight = [[vector.pop(0) for _ in range(outputs)] for _ in range(inputs)]
        layers.append((weight, [vector.pop(0) for _ in range(outputs)]))
    assert not vector
    return layers


def mlp(layers, x, hidden, output):
    """A fully connected network, one number at a time."""
    for index, (weight, bias) in enumerate(layers):
        sums = [b + sum(x[i] * weight[i][o] for i in range(len(x))) for o, b in enumerate(bias)]
        x = [(output if index == len(layers) - 1 else hidden)(s) for s in sums]
    return x


def gap(x, y, walls):
    """Distance from a point to the nearest wall or to the world's edge; negative outside the world."""
    gaps = [x, y, 600 - x, 600 - y]
    for x_low, y_low, x_high, y_high in walls:
        gaps.append(math.hypot(max(x_low - x, 0, x - x_high), max(y_low - y, 0, y - y_high)))
    return min(gaps)


def robot_step(layers, state, walls):
    """One step of the mobile robot: try ever longer parts of the move until one is blocked, then bisect."""
    x, y, heading = map(float, state)
    left, right = mlp(layers, [x / 600, y / 600, math.cos(heading), math.sin(heading)], lambda s: max(s, 0), math.tanh)
    dx, dy = (2 * (left + right) * f(heading) for f in (math.cos, math.sin))
    # A robot that touches a wall by a rounding error may go along it or away, but not further in.
    allowed = min(REACH, gap(x, y, walls)) - 1e-9

    def is_free(share):
        return gap(x + share * dx, y + share * dy, walls) >= allowed

    free, samples = 1.0, 64
    for i in range(1, samples + 1):
        if not is_free(i / samples):
            free, blocked = (i - 1) / samples, i / samples
            for _ in range(40):
                middle = (free + blocked) / 2
                free, blocked = (middle, blocked) if is_free(middle) else (free, middle)
            break
    return x + free * dx, y + free * dy, heading + 4 * (right - left) / 40


def robot_picture(x, y, samples=100):
    """Each pixel's share that the robot covers, by counting sample points; x and y in px."""
    image = np.zeros((64, 64))
    offsets = (np.arange(samples) + 0.5) / samples
    for row in range(64):
        for column in range(64):
            px, py = (column + offsets) * 600 / 64, 600 - (row + offsets) * 600 / 64
            if abs(px.mean() - x) < 20 and abs(py.mean() - y) < 20:
                image[row, column] = np.mean((px[None] - x) ** 2 + (py[:, None] - y) ** 2 <= 100)
    return image


def silu(x):
    return x / (1 + np.exp(-x))


def convolution(image, weight, bias):
    """3x3 convolution with stride 2 and padding 1, one output pixel at a time; weight (27 or 72, outputs)."""
    height, width, channels = image.shape
    out = np.zeros((math.ceil(height / 2), math.ceil(width / 2), len(bias)))
    kernel = np.reshape(weight, (3, 3, channels, -1))
    for row in range(out.shape[0]):
        for column in range(out.shape[1]):
            out[row, column] = bias
            for i in range(3):
                for j in range(3):
                    r, c = 2 * row + i - 1, 2 * column + j - 1
                    if 0 <= r < height and 0 <= c < width:
                        out[row, column] += image[r, c] @ kernel[i, j]
    return silu(out)


def grid_cnn(layers, image, keys):
    """The values of the five actions."""
    for weight, bias in layers[:2]:
        image = convolution(image, np.array(weight), np.array(bias))
    (hidden, hidden_bias), (last, last_bias) = layers[2:]
    features = silu(np.concatenate([image.ravel(), keys]) @ np.array(hidden) + hidden_bias)
    return features @ np.array(last) + last_bias


class GridWorld:
    """The grid as a changing list of characters."""

    def __init__(self, rows):
        self.tiles = [list(row) for row in rows]
        self.letters = sorted({c for row in rows for c in row if c in "abcd"})
        ((self.row, self.column),) = [(r, line.index("S")) for r, line in enumerate(self.tiles) if "S" in line]
        self.held, self.points = set(), 0

    def act(self, action):
        row, column = self.row + MOVES[action][0], self.column + MOVES[action][1]
        inside = 0 <= row < len(self.tiles) and 0 <= column < len(self.tiles[0])
        tile = self.tiles[row][column] if inside else "#"
        if tile == "#" or (tile in "ABCD" and tile.lower() not in self.held):
            return
        self.row, self.column = row, column
        if tile in "abcd":
            self.held.add(tile)
            self.points += 10
        elif tile in "ABCD":
            self.points += 20
        self.tiles[row][column] = "."

    def keys(self):
        return [float(letter in self.held) for letter in self.letters]

    def view(self, colours, agent, masked):
        image = np.empty((len(self.tiles), len(self.tiles[0]), 3))
        for row, line in enumerate(self.tiles):
            for column, tile in enumerate(line):
                seen = max(abs(row - self.row), abs(column - self.column)) <= 3
                here = (row, column) == (self.row, self.column)
                image[row, column] = (agent if here else colours[tile]) if seen else masked
        return image


def fewest_steps(rows, with_keys=True):
    """Fewest steps from the start to every tile that can be reached, by a search over (tile, keys held)."""
    tiles = {(r, c): tile for r, row in enumerate(rows) for c, tile in enumerate(row)}
    start = next(place for place, tile in tiles.items() if tile == "S")
    queue, seen, steps = deque([(start, frozenset(), 0)]), {(start, frozenset())}, {}
    while queue:
        place, held, count = queue.popleft()
        steps.setdefault(place, count)
        for row, column in MOVES:
            target = (place[0] + row, place[1] + column)
            tile = tiles.get(target, "#")
            if tile == "#" or (tile in "ABCD" and tile.lower() not in held):
                continue
            now = held | {tile} if with_keys and tile in "abcd" else held
            if (target, now) not in seen:
                seen.add((target, now))
                queue.append((target, now, count + 1))
    return steps
