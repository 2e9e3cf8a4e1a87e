"""Pictures of grid worlds, drawn with Pillow at several times the size and scaled down for smooth edges."""

from functools import lru_cache

import numpy as np
from jaxtyping import UInt8
from PIL import Image, ImageDraw

from bellief.envs.grid import FLAG, GOAL, LAVA, WALL, GridLayout

TILE = 56  # pixels of a tile in the finished picture
MARGIN = 8
GAP = 3  # between two tiles of different kinds
SMOOTHING = 4  # drawn this many times larger, then averaged

PAPER = "#FBF9F4"
FLOOR_FILL = "#EFEBE1"
WALL_FILL = "#4B5566"
START_FILL = "#DCE6F2"
START_MARK = "#8FADCF"
GOAL_FILL = "#CFE8D5"
GOAL_MARK = "#2F9E63"
FLAG_FILL = "#F9E3A8"
FLAG_CLOTH = "#E0A100"
POLE = "#6B5B3E"
TAKEN_MARK = "#DDD6C5"
AGENT_FILL = "#2F5FB3"
AGENT_RIM = "#FFFFFF"
# From the crust to the glow.
LAVA_COLOURS = ((178, 42, 28), (226, 78, 36), (245, 132, 52), (255, 193, 92))


def draw_grid(layout: GridLayout, agent: int, held: frozenset[int]) -> UInt8[np.ndarray, "height width 3"]:
    """The map with the agent in cell `agent`; flags in `held` have left their cells."""
    picture = _background(layout, held).copy()
    row, column = layout.cells[agent]
    picture.paste(_agent(), (MARGIN + column * TILE, MARGIN + row * TILE), _agent())
    return np.asarray(picture, dtype=np.uint8).copy()


@lru_cache(maxsize=64)
def _background(layout: GridLayout, held: frozenset[int]) -> Image.Image:
    """Everything but the agent; kept, since a whole run needs only one picture for each set of flags."""
    height, width = (len(layout.rows) * TILE + 2 * MARGIN, len(layout.rows[0]) * TILE + 2 * MARGIN)
    large = (width * SMOOTHING, height * SMOOTHING)
    picture = Image.new("RGB", large, PAPER)
    pen = ImageDraw.Draw(picture)
    lava_mask = Image.new("L", large, 0)
    lava_pen = ImageDraw.Draw(lava_mask)
    fills = {layout.start_character: START_FILL, GOAL: GOAL_FILL}
    taken = {layout.cells[layout.flags[flag]] for flag in held}

    for row, line in enumerate(layout.rows):
        for column, character in enumerate(line):
            if character == WALL:
                _tile(pen, layout, row, column, WALL_FILL)
            elif character == LAVA:
                _tile(lava_pen, layout, row, column, 255)
            else:
                present = character == FLAG and (row, column) not in taken
                fill = FLAG_FILL if present else fills.get(character, FLOOR_FILL)
                _tile(pen, layout, row, column, fill, joined=False)
            if character == layout.start_character:
                _start_mark(pen, row, column)
            elif character == GOAL:
                _star(pen, row, column)
            elif character == FLAG:
                _flag(pen, row, column, present)

    picture.paste(_lava(large), (0, 0), lava_mask)
    return picture.resize((width, height), Image.Resampling.LANCZOS)


def _corner(row: float, column: float) -> tuple[float, float]:
    """Where the point (row, column), counted in tiles, lies in the large picture, as (x, y)."""
    return (MARGIN + column * TILE) * SMOOTHING, (MARGIN + row * TILE) * SMOOTHING


def _box(row: float, column: float, size: float) -> tuple[float, float, float, float]:
    """The square of `size` tiles centred on the tile at (row, column)."""
    lead = (1 - size) / 2
    left, top = _corner(row + lead, column + lead)
    # Pillow counts the last pixel in.
    return left, top, left + size * TILE * SMOOTHING - 1, top + size * TILE * SMOOTHING - 1


def _tile(pen, layout: GridLayout, row: int, column: int, fill, joined: bool = True) -> None:
    """A rounded tile; where `joined`, it runs into its neighbours of the same kind."""

    def same(down: int, right: int) -> bool:
        inside = 0 <= row + down < len(layout.rows) and 0 <= column + right < len(layout.rows[0])
        return inside and layout.rows[row + down][column + right] == layout.rows[row][column]

    left, top, right, bottom = _box(row, column, 1 - GAP / TILE)
    radius = 8 * SMOOTHING
    pen.rounded_rectangle((left, top, right, bottom), radius, fill=fill)
    if not joined:
        return
    # Each joint is drawn by the tile above or to the left of it. It reaches to the middle of both tiles, so that it
    # covers their rounded corners.
    reach = TILE * SMOOTHING
    if same(0, 1):
        pen.rectangle(((left + right) / 2, top, (left + right) / 2 + reach, bottom), fill=fill)
    if same(1, 0):
        pen.rectangle((left, (top + bottom) / 2, right, (top + bottom) / 2 + reach), fill=fill)
    if same(0, 1) and same(1, 0) and same(1, 1):
        gap = (GAP + 1) * SMOOTHING
        pen.rectangle((right - gap, bottom - gap, right + 2 * gap, bottom + 2 * gap), fill=fill)


def _lava(size: tuple[int, int]) -> Image.Image:
    """Flowing bands over the whole picture, of which the lava tiles show their part."""
    # Smooth enough to be computed coarsely and enlarged.
    y, x = np.mgrid[0 : size[1] // SMOOTHING, 0 : size[0] // SMOOTHING] / TILE
    bent_x = x + 0.28 * np.sin(2.6 * y + 0.7) + 0.12 * np.sin(5.3 * y + 1.9 * x)
    bent_y = y + 0.22 * np.sin(2.1 * x + 1.3) + 0.10 * np.sin(4.7 * x - 2.3 * y)
    heat = np.sin(5.2 * bent_y + 1.1 * bent_x) + 0.55 * np.sin(3.1 * bent_x - 2.0 * bent_y + 0.8)
    heat = np.clip(heat / 3.1 + 0.5, 0.0, 1.0) ** 1.4 * (len(LAVA_COLOURS) - 1)
    channels = np.array(LAVA_COLOURS, dtype=float).T
    colours = [np.interp(heat, np.arange(len(LAVA_COLOURS)), channel) for channel in channels]
    return Image.fromarray(np.stack(colours, axis=-1).astype(np.uint8)).resize(size, Image.Resampling.BICUBIC)


def _start_mark(pen, row: int, column: int) -> None:
    pen.ellipse(_box(row, column, 0.80), outline=START_MARK, width=3 * SMOOTHING)


def _star(pen, row: int, column: int) -> None:
    x, y = _corner(row + 0.52, column + 0.5)
    angle = np.pi * (np.arange(10) / 5 - 0.5)
    radius = np.where(np.arange(10) % 2, 0.15, 0.34) * TILE * SMOOTHING
    pen.polygon(list(zip(x + radius * np.cos(angle), y + radius * np.sin(angle), strict=True)), fill=GOAL_MARK)


def _flag(pen, row: int, column: int, present: bool) -> None:
    """A pennant on its pole; pale where the flag has been taken."""
    corners = [_corner(row + down, column + across) for down, across in ((0.18, 0.33), (0.36, 0.82), (0.54, 0.33))]
    pen.polygon(corners, fill=FLAG_CLOTH if present else TAKEN_MARK)
    pole = (*_corner(row + 0.16, column + 0.26), *_corner(row + 0.86, column + 0.33))
    pen.rounded_rectangle(pole, 2 * SMOOTHING, fill=POLE if present else TAKEN_MARK)


@lru_cache(maxsize=1)
def _agent() -> Image.Image:
    """The agent alone on a transparent tile: a disc with a white rim, a soft shadow and two eyes."""
    large = TILE * SMOOTHING
    y, x = np.mgrid[0:large, 0:large] / large
    # The shadow fades with the distance from a flat ellipse below the disc.
    distance = np.hypot((x - 0.5) / 0.33, (y - 0.78) / 0.11)
    layers = np.zeros((large, large, 4), dtype=np.uint8)
    layers[..., :3] = (30, 35, 50)
    layers[..., 3] = (110 * np.clip(1.25 - distance, 0.0, 1.0)).astype(np.uint8)
    picture = Image.fromarray(layers)
    pen = ImageDraw.Draw(picture)

    def disc(centre_x: float, centre_y: float, radius: float, fill: str) -> None:
        bounds = (centre_x - radius, centre_y - radius, centre_x + radius, centre_y + radius)
        pen.ellipse(tuple(bound * large for bound in bounds), fill=fill)

    disc(0.5, 0.48, 0.32, AGENT_RIM)
    disc(0.5, 0.48, 0.28, AGENT_FILL)
    for eye in (0.40, 0.60):
        disc(eye, 0.43, 0.067, "#FFFFFF")
        disc(eye + 0.012, 0.44, 0.032, "#1B2B4B")
    return picture.resize((TILE, TILE), Image.Resampling.LANCZOS)


def draw_pendulum(angle: float) -> UInt8[np.ndarray, "height width 3"]:
    """A pole at `angle` (radians, clockwise from upright) on its cart."""
    width, height, reach = (value * SMOOTHING for value in (320, 240, 130))
    picture = Image.new("RGB", (width, height), PAPER)
    pen = ImageDraw.Draw(picture)
    middle, floor = width // 2, height - 50 * SMOOTHING
    unit = SMOOTHING
    pen.line([(0, floor + 22 * unit), (width, floor + 22 * unit)], fill=WALL_FILL, width=3 * unit)
    pen.rounded_rectangle(
        [middle - 40 * unit, floor - 12 * unit, middle + 40 * unit, floor + 12 * unit], 6 * unit, fill=AGENT_FILL
    )
    for side in (-22, 22):
        centre = middle + side * unit
        pen.ellipse([centre - 9 * unit, floor + 4 * unit, centre + 9 * unit, floor + 22 * unit], fill=WALL_FILL)
    tip = (middle + reach * np.sin(angle), floor - reach * np.cos(angle))
    pen.line([(middle, floor), tip], fill=POLE, width=8 * unit)
    for (x, y), radius, fill in (((middle, floor), 6, AGENT_RIM), (tip, 13, GOAL_MARK)):
        pen.ellipse([x - radius * unit, y - radius * unit, x + radius * unit, y + radius * unit], fill=fill)
    small = picture.resize((width // SMOOTHING, height // SMOOTHING), Image.Resampling.BOX)
    return np.asarray(small, dtype=np.uint8).copy()
