"""Draws on an SVG of fixed size. Same calls, same bytes."""

from xml.sax.saxutils import escape

INK = "#1f2933"
FAINT = "#667380"
GRID = "#d5dbe1"
PAPER = "#fbfcfd"
FREE = "#edf1f5"
BLUE = "#2f6db3"
TEAL = "#1f8a70"
PURPLE = "#7a4fa3"
ORANGE = "#d07a1c"
RED = "#b8322a"
WHITE = "#ffffff"

FONT = "Helvetica, Arial, 'DejaVu Sans', sans-serif"


PICTURES = {}


def picture(name, width, height, title):
    """What follows draws this file."""
    def keep(draw):
        def drawn():
            canvas = Canvas(width, height, title)
            draw(canvas)
            return canvas.svg()
        PICTURES[f"{name}.svg"] = drawn
        return draw
    return keep


def number(value):
    return f"{round(value, 2):g}"


class Canvas:
    """Its own light paper, so that it reads the same on a dark page."""

    def __init__(self, width, height, title):
        self.width, self.height, self.title = width, height, title
        self.parts = []
        self.hatches = {}

    def add(self, name, text=None, **attributes):
        words = ""
        for key, value in attributes.items():
            if value is not None:
                shown = number(value) if isinstance(value, (int, float)) else value
                words += f' {key.replace("_", "-")}="{shown}"'
        end = "/>" if text is None else f">{escape(text)}</{name}>"
        self.parts.append(f"<{name}{words}{end}")

    def hatch(self, colour):
        """Stripes: promised, not used."""
        name = f"hatch{len(self.hatches)}" if colour not in self.hatches else self.hatches[colour]
        self.hatches[colour] = name
        return f"url(#{name})"

    def rect(self, x, y, width, height, fill, stroke=None, radius=0, dash=None, thick=1):
        self.add("rect", x=x, y=y, width=width, height=height, rx=radius or None, fill=fill, stroke=stroke,
                 stroke_width=thick if stroke else None, stroke_dasharray=dash)

    def text(self, x, y, words, size=13, fill=INK, anchor=None, weight=None, style=None):
        self.add("text", words, x=x, y=y, font_size=size, fill=fill, text_anchor=anchor, font_weight=weight,
                 font_style=style)

    def line(self, x1, y1, x2, y2, stroke=INK, thick=1, dash=None):
        self.add("line", x1=x1, y1=y1, x2=x2, y2=y2, stroke=stroke, stroke_width=thick, stroke_dasharray=dash)

    def path(self, points, stroke, thick=2, fill="none", dash=None, opacity=None):
        self.add("polyline", points=" ".join(f"{number(x)},{number(y)}" for x, y in points), fill=fill,
                 stroke=stroke, stroke_width=thick, stroke_dasharray=dash, stroke_linejoin="round",
                 fill_opacity=opacity)

    def arrow(self, x1, y1, x2, y2, stroke=INK, thick=1.5):
        """Straight, along an axis."""
        self.line(x1, y1, x2, y2, stroke, thick)
        if x1 == x2:
            step = 6 if y2 > y1 else -6
            points = [(x2 - 4, y2 - step), (x2, y2), (x2 + 4, y2 - step)]
        else:
            step = 6 if x2 > x1 else -6
            points = [(x2 - step, y2 - 4), (x2, y2), (x2 - step, y2 + 4)]
        self.path(points, stroke, thick)

    def box(self, x, y, width, height, lines, fill=WHITE, stroke=INK, ink=INK, size=13, weight=None):
        """Text in the middle of a frame."""
        self.rect(x, y, width, height, fill, stroke, radius=5)
        top = y + height / 2 - (len(lines) - 1) * (size + 4) / 2 + size * 0.36
        for row, words in enumerate(lines):
            self.text(x + width / 2, top + row * (size + 4), words, size, ink, "middle", weight)

    def legend(self, x, y, entries, step=None):
        for fill, words in entries:
            self.rect(x, y - 11, 14, 14, fill, FAINT, radius=2)
            self.text(x + 20, y, words, 12)
            x += step or 34 + len(words) * 6.8

    def svg(self):
        patterns = "".join(
            f'<pattern id="{name}" width="7" height="7" patternUnits="userSpaceOnUse" '
            f'patternTransform="rotate(45)"><rect width="7" height="7" fill="{WHITE}"/>'
            f'<rect width="3" height="7" fill="{colour}"/></pattern>'
            for colour, name in sorted(self.hatches.items(), key=lambda pair: pair[1]))
        head = (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" '
                f'width="{self.width}" height="{self.height}" role="img" font-family="{FONT}">')
        paper = (f'<rect x="0.5" y="0.5" width="{self.width - 1}" height="{self.height - 1}" rx="8" '
                 f'fill="{PAPER}" stroke="{GRID}"/>')
        lines = [head, f"<title>{escape(self.title)}</title>"]
        if patterns:
            lines.append(f"<defs>{patterns}</defs>")
        return "\n".join(lines + [paper] + self.parts + ["</svg>"]) + "\n"
