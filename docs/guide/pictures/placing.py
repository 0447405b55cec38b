"""Pictures of which cards a job gets."""

from canvas import BLUE, FAINT, FREE, GRID, INK, ORANGE, PURPLE, RED, TEAL, WHITE, picture

MINUS = "−"


@picture("room", 720, 236, "What is free on a card")
def room(c):
    c.text(24, 30, "GPU 3, 24 GiB: is there room for a job that asks for 8 GiB?", 15, weight="bold")
    left, width, top, height = 24, 672, 62, 46
    unit = width / 24
    parts = [(4, ORANGE, "strangers", "4"), (5, BLUE, "used by job 12", "5"),
             (3, c.hatch(BLUE), "promised", "3"), (1, c.hatch(FAINT), "margin", "1"), (11, FREE, "free", "11")]
    x = left
    for size, fill, words, amount in parts:
        c.rect(x, top, size * unit, height, fill, WHITE)
        plain = fill in (ORANGE, BLUE)
        c.text(x + size * unit / 2, top - 8, words, 12, FAINT, "middle")
        if plain or fill == FREE:
            c.text(x + size * unit / 2, top + 29, amount + " GiB", 14, WHITE if plain else INK, "middle", "bold")
        else:
            c.text(x + size * unit / 2, top + height + 16, amount + " GiB", 12, FAINT, "middle")
        x += size * unit
    c.rect(left, top, width, height, "none", INK)
    c.line(left, 150, left + 9 * unit, 150, FAINT)
    c.line(left, 146, left, 154, FAINT)
    c.line(left + 9 * unit, 146, left + 9 * unit, 154, FAINT)
    c.text(left + 4.5 * unit, 168, "what nvidia-smi shows as used: 9 GiB", 12, FAINT, "middle")
    c.line(left + 13 * unit, 150, left + 24 * unit, 150, INK)
    c.line(left + 13 * unit, 146, left + 13 * unit, 154, INK)
    c.line(left + 24 * unit, 146, left + 24 * unit, 154, INK)
    c.text(left + 18.5 * unit, 168, "what a new job can have: 11 GiB", 12, INK, "middle")
    sum_of_it = f"15 {MINUS} 3 promised {MINUS} 1 margin = 11 GiB"
    c.text(24, 208, f"Job 12 declared 8 GiB and uses 5. Free: {sum_of_it}; it fits.", 14)


@picture("claim", 720, 330, "A claim over time: declared, used, shrunk")
def claim(c):
    left, right, bottom, top = 64, 690, 258, 62
    c.text(24, 30, "A job that declared 10 GiB, with shrink_claims=10m", 15, weight="bold")

    def x(minute):
        return left + minute * (right - left) / 32

    def y(gib):
        return bottom - gib * (bottom - top) / 13

    used = [(1, 0), (1.5, 1), (2.5, 3), (4, 4.2), (5, 5.6), (6, 6), (24, 6), (24.6, 8), (26, 9.5), (27, 11), (32, 11)]
    counted = [(1, 10), (16, 10), (16, 6), (24.2, 6), (24.2, 10), (26.35, 10), (27, 11), (32, 11)]
    c.add("polygon", points=" ".join(f"{x(a):.1f},{y(b):.1f}" for a, b in counted + [(32, 0), (1, 0)]),
          fill=c.hatch("#b9cfe8"))
    c.add("polygon", points=" ".join(f"{x(a):.1f},{y(b):.1f}" for a, b in used + [(32, 0), (1, 0)]), fill=BLUE)
    for gib in (0, 2, 4, 6, 8, 10, 12):
        c.line(left - 4, y(gib), left, y(gib), FAINT)
        c.text(left - 8, y(gib) + 4, str(gib), 12, FAINT, "end")
    c.text(24, top - 12, "GiB", 12, FAINT)
    for minute in range(0, 33, 4):
        c.line(x(minute), bottom, x(minute), bottom + 4, FAINT)
        c.text(x(minute), bottom + 18, str(minute), 12, FAINT, "middle")
    c.text(right, bottom + 34, "minutes", 12, FAINT, "end")
    c.line(left, top - 6, left, bottom, FAINT)
    c.line(left, bottom, right, bottom, FAINT)
    c.path([(x(a), y(b)) for a, b in counted], INK, 2.5)
    c.text(x(1.2), y(10.4), "decided: all 10 count at once", 12)
    c.text(x(16.2), y(8.3), "flat for 10 min:", 12)
    c.text(x(16.2), y(7.2), "it keeps what it uses", 12)
    c.text(x(20.6), y(13), "grows again: 10 count again,", 12)
    c.text(x(20.6), y(11.9), "then what it uses", 12)
    c.line(x(24.2), y(11.6), x(24.2), y(10.2), FAINT)
    c.legend(64, 312, [(BLUE, "used"), (c.hatch("#b9cfe8"), "promised, not used")])
    c.line(322, 306, 346, 306, INK, 2.5)
    c.text(354, 311, "what the card counts for this job", 12)


@picture("sharing", 720, 250, "Who shares a card with whom")
def sharing(c):
    c.text(24, 30, "Jobs that declare their memory share; one that does not has its card to itself", 15, weight="bold")
    cards = [([(4, BLUE, "job 1: python train.py")], "whole card: nobody comes to it, however little it uses", True),
             ([(8, TEAL, "job 2: 8 GiB"), (10, TEAL, "job 3: 10 GiB")],
              "6 GiB left for a job that asks for no more", False),
             ([(3, ORANGE, "other"), (12, TEAL, "job 4: 12 GiB")],
              "an idle stranger: what it holds is missing, nothing else", False)]
    left, unit = 92, 17
    for index, (parts, words, whole) in enumerate(cards):
        y = 50 + index * 66
        c.text(24, y + 20, f"GPU {index}", 12, FAINT)
        c.rect(left, y, 24 * unit, 30, c.hatch("#b9cfe8") if whole else FREE)
        x = left
        for size, fill, label in parts:
            width = size * unit
            c.rect(x, y, width, 30, fill, WHITE)
            if whole:
                c.rect(x + 78, y + 6, 172, 18, WHITE, radius=2)
                c.text(x + 164, y + 20, label, 12, INK, "middle")
            else:
                c.text(x + width / 2, y + 20, label, 12, WHITE, "middle")
            x += width
        c.rect(left, y, 24 * unit, 30, "none", INK)
        c.text(left, y + 47, words, 12, FAINT)
    c.text(left + 24 * unit + 16, 70, "24 GiB each", 12, FAINT)


def row_of_cards(c, x, y, fills, size=72, names=None):
    for index, (fill, words) in enumerate(fills):
        left = x + index * (size + 10)
        solid = fill in (BLUE, TEAL, ORANGE, PURPLE)
        c.rect(left, y, size, 40, fill, INK if not solid else fill, radius=4)
        c.text(left + size / 2, y + 25, words, 12, WHITE if solid else INK, "middle")
        c.text(left + size / 2, y + 55, names[index] if names else f"GPU {index}", 11, FAINT, "middle")


@picture("gpu-left", 720, 326, "gpu_left=2 on eight cards: last and any")
def gpu_left(c):
    free, left = FREE, c.hatch("#c9b6dd")
    ours, theirs = (BLUE, "berth"), (ORANGE, "other")
    c.text(24, 32, "gpu_left=2, gpu_left_mode=last: always the same two", 15, weight="bold")
    row_of_cards(c, 24, 48, [ours, ours, theirs, ours, (free, "free"), (free, "free"), (left, "left"), (left, "left")])
    c.text(24, 124, "GPU 4 and 5 may be taken; 6 and 7 never, even when all the others are busy.", 12)
    c.line(24, 142, 696, 142, GRID)
    c.text(24, 168, "gpu_left=2, gpu_left_mode=any: whichever two are free", 15, weight="bold")
    row_of_cards(c, 24, 184, [ours, theirs, ours, theirs, ours, (free, "free"), (left, "left"), (left, "left")])
    c.text(24, 260, f"6 are berth’s or could be, so the quota is 6 {MINUS} 2 = 4: one more, whichever it is.", 12)
    c.text(24, 279, f"When strangers come to two more, it is 4 {MINUS} 2 = 2: nothing new starts.", 12)
    c.legend(24, 308, [(BLUE, "in use by berth"), (ORANGE, "in use by others"), (free, "free for berth"),
                        (left, "left to others")])


@picture("topology", 720, 318, "Two cards of eight, close to each other")
def topology(c):
    c.text(24, 30, "A job wants 2 of the free cards 0, 3, 6, 7", 15, weight="bold")
    for node in (0, 1):
        c.rect(24 + node * 344, 50, 328, 176, "none", GRID, radius=8, thick=1.5)
        c.text(36 + node * 344, 70, f"NUMA node {node}", 12, FAINT)
        for switch in (0, 1):
            left = 40 + node * 344 + switch * 154
            c.box(left, 84, 142, 26, ["PCIe switch"], FREE, FAINT, size=12)
    free, chosen = {0, 3, 6, 7}, {6, 7}
    for index in range(8):
        left = 40 + index // 4 * 344 + index % 4 // 2 * 154 + index % 2 * 84
        c.line(left + 29, 110, left + 29, 140, FAINT)
        fill = BLUE if index in chosen else WHITE if index in free else c.hatch("#c3c9d0")
        c.box(left, 140, 58, 44, [f"GPU {index}"], fill, INK, WHITE if index in chosen else INK, 13,
              "bold" if index in chosen else None)
        words = "taken" if index in chosen else "free" if index in free else "in use"
        c.text(left + 29, 204, words, 12, FAINT, "middle")
    for one in (0, 2, 4, 6):
        left = 40 + one // 4 * 344 + one % 4 // 2 * 154 + 58
        c.line(left, 162, left + 26, 162, TEAL, 5)
    c.line(24, 252, 52, 252, TEAL, 5)
    c.text(60, 256, "NVLink", 12)
    c.text(130, 256, "The order: NVLink, one PCIe switch, one NUMA node, anything else.", 12, FAINT)
    c.text(24, 282, "6 and 7 share an NVLink, so they are taken, whatever the strategy thinks of them.", 12)
    c.text(24, 300, "Without them: 0 and 3, on one NUMA node. Among groups equally close the strategy chooses.", 12)


@picture("strangers", 720, 372, "How a stranger's process is judged")
def strangers(c):
    c.text(24, 30, "A process that is not berth’s (foreign.policy=grade)", 15, weight="bold")
    questions = [("at most 1 GiB, at most 5 % busy,", "at least 10 s old?", "yes", "ignore",
                  "as if it were not there;", "only its memory is missing", TEAL),
                 ("younger than 10 s?", None, "yes", "wait", "it may be about to begin;", "look again later", RED),
                 ("busier than 30 %,", "or nobody can say how busy?", "yes", "wait", "somebody works here", None, RED)]
    y = 50
    for first, second, word, verdict, why, more, colour in questions:
        c.box(24, y, 290, 56, [first] + ([second] if second else []))
        c.arrow(314, y + 28, 384, y + 28)
        c.text(346, y + 20, word, 12, FAINT, "middle")
        c.box(386, y + 8, 90, 40, [verdict], colour, colour, WHITE, 15, "bold")
        c.text(490, y + (24 if more else 32), why, 12, FAINT)
        if more:
            c.text(490, y + 40, more, 12, FAINT)
        c.arrow(169, y + 56, 169, y + 82)
        c.text(178, y + 74, "no", 12, FAINT)
        y += 84
    c.box(124, y - 1, 90, 36, ["share"], BLUE, BLUE, WHITE, 15, "bold")
    c.text(228, y + 22, "a job may come to the card if its memory is free there", 12, FAINT)
    for x, words in ((24, "1 GiB: foreign.small_memory"), (214, "5 %: foreign.idle_utilization"),
                     (408, "10 s: foreign.young"), (548, "30 %: max_utilization")):
        c.text(x, y + 62, words, 12, FAINT)


def bar(c, x, y, width, fill, words, ink=WHITE):
    c.rect(x, y, width, 30, fill, WHITE, radius=3)
    c.text(x + width / 2, y + 20, words, 12, ink, "middle")


@picture("give-way", 720, 300, "A stranger comes: requeue and pause")
def give_way(c):
    c.text(24, 30, "GPU 0, an opportunistic job, and a stranger who trains from minute 3 to 6", 15, weight="bold")
    left, unit = 118, 60

    def x(minute):
        return left + minute * unit

    c.line(x(6), 50, x(6), 232, FAINT, 1, "3 3")
    c.line(x(7), 50, x(7), 232, FAINT, 1, "3 3")
    c.text(24, 78, "stranger", 12, FAINT)
    bar(c, x(3), 58, 3 * unit, ORANGE, "trains")
    c.text(24, 134, "requeue", 12, FAINT)
    bar(c, x(0), 114, 3 * unit, BLUE, "attempt 1")
    bar(c, x(3), 114, 0.45 * unit, PURPLE, "")
    bar(c, x(3.45), 114, 3.55 * unit, FREE, "waits, for this card or another", INK)
    bar(c, x(7), 114, 2.6 * unit, BLUE, "attempt 2")
    c.text(24, 200, "pause", 12, FAINT)
    bar(c, x(0), 180, 3 * unit, BLUE, "runs")
    bar(c, x(3), 180, 4 * unit, c.hatch("#b9cfe8"), "")
    c.rect(x(3) + 20, 186, 200, 18, WHITE, radius=2)
    c.text(x(5), 200, "stands still, keeps its memory", 12, INK, "middle")
    bar(c, x(7), 180, 2.6 * unit, BLUE, "goes on")
    c.text(x(6.5), 230, "quiet_time", 10, FAINT, "middle")
    c.line(x(0), 240, x(9.6), 240, FAINT)
    for minute in range(10):
        c.line(x(minute), 240, x(minute), 244, FAINT)
        c.text(x(minute), 258, str(minute), 12, FAINT, "middle")
    c.text(x(9.6), 258, "min", 12, FAINT, "middle")
    c.legend(118, 286, [(PURPLE, "warning signal, checkpoint, end")])
    c.text(366, 286, "Nothing flaps: a minute must pass without strangers.", 12)
