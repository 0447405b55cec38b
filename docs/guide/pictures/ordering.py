"""Pictures of who goes first, and by which rules."""

from canvas import BLUE, FAINT, GRID, INK, ORANGE, PURPLE, TEAL, WHITE, picture


@picture("order", 720, 214, "In which order waiting jobs are looked at")
def order(c):
    c.text(24, 30, "Two jobs want the same card: the first difference decides", 15, weight="bold")
    steps = [("started", "by hand", "berth start"), ("waited", "longer than", "aging"),
             ("priority", "lower number", "priority"), ("user who", "used less", "fair_share"),
             ("batch that", "used less", "fair_share"), ("its place", "in the queue", "order")]
    for index, (first, second, rule) in enumerate(steps):
        left = 24 + index * 114
        c.box(left, 52, 102, 56, [first, second], "#e8f0f9", BLUE, size=13)
        c.text(left + 51, 128, rule, 12, FAINT, "middle")
        if index:
            c.arrow(left - 11, 80, left - 1, 80)
    c.text(24, 166, "A job that does not fit does not hold up a later one that does, unless cards are held for it.", 12)
    c.text(24, 186, "In a queue with a limit of 1 only the very first job is looked at.", 12)


@picture("fair-share", 720, 330, "Use fades with a half-life of seven days")
def fair_share(c):
    c.text(24, 30, "GPU hours that count, of two batches", 15, weight="bold")
    left, right, bottom, top = 64, 690, 258, 62

    def x(day):
        return left + day * (right - left) / 28

    def y(hours):
        return bottom - hours * (bottom - top) / 320

    def curve(busy_until, cards):
        points, used = [], 0.0
        for step in range(28 * 8 + 1):
            points.append((step / 8, used))
            used = used * 2 ** (-1 / 56) + (cards * 3 if step / 8 < busy_until else 0)
        return points

    one, two = curve(4, 4), curve(28, 0.75)
    cross = next(day for (day, a), (_, b) in zip(one, two) if day > 4 and a < b)
    c.rect(x(cross), top, right - x(cross), bottom - top, "#e8f0f9")
    for hours in (0, 100, 200, 300):
        c.line(left, y(hours), right, y(hours), GRID)
        c.text(left - 8, y(hours) + 4, str(hours), 12, FAINT, "end")
    for day in range(0, 29, 7):
        c.line(x(day), bottom, x(day), bottom + 4, FAINT)
        c.text(x(day), bottom + 18, f"day {day}", 12, FAINT, "middle" if day < 28 else "end")
    c.path([(x(a), y(b)) for a, b in one], BLUE, 2.5)
    c.path([(x(a), y(b)) for a, b in two], ORANGE, 2.5, dash="7 4")
    c.text(x(cross) + 10, y(282), "batch 1: four cards for four days, then nothing;", 12, BLUE)
    c.text(x(cross) + 10, y(258), "after every week half of it counts", 12, BLUE)
    c.text(x(5.2), y(30), "batch 2: three quarters of a card, all the time", 12, "#9a5510")
    c.line(x(cross), top, x(cross), bottom, FAINT, 1, "3 3")
    c.text(x(cross) - 10, top - 8, "batch 2 goes first", 13, INK, "end", "bold")
    c.text(x(cross) + 10, top - 8, "batch 1 goes first", 13, INK, None, "bold")
    c.text(24, 312, "Of equal priority, whoever has used less goes first. A few seconds change nothing.", 12, FAINT)


@picture("backfill", 720, 368, "A hold and who may overtake it")
def backfill(c):
    c.text(24, 30, "Four cards at 12:00. Job 30 wants all of them; it goes first.", 15, weight="bold")
    left, unit, top, height = 148, 89, 74, 38

    def x(hour):
        return left + hour * unit

    def job(card, begin, end, fill, words, cards=1, ink=WHITE):
        c.rect(x(begin) + 1, top + card * (height + 6), (end - begin) * unit - 2, cards * (height + 6) - 6, fill,
               None, radius=3)
        c.text(x((begin + end) / 2), top + card * (height + 6) + (cards * (height + 6) - 6) / 2 + 4, words, 12, ink,
               "middle")

    for hour in range(7):
        c.line(x(hour), top - 14, x(hour), top + 4 * (height + 6), GRID, 1)
        c.text(x(hour), top - 20, f"{12 + hour}:00", 12, INK if hour == 0 else FAINT, "middle",
               "bold" if hour == 0 else None)
    for card in range(4):
        c.text(24, top + card * (height + 6) + 24, f"GPU {card}", 12, FAINT)
    c.line(x(0), top - 14, x(0), top + 4 * (height + 6), INK, 2)
    for card, begin in ((0, 2), (2, 0), (3, 0)):
        c.rect(x(begin) + 1, top + card * (height + 6), (3 - begin) * unit - 2, height,
               c.hatch("#d9cbe8"), PURPLE, radius=3, dash="4 3")
    job(0, -0.8, 2, BLUE, "job 21, time 3h, since 11:00")
    job(1, -0.8, 3, BLUE, "job 22, time 4h, since 11:00")
    job(0, 3, 6, PURPLE, "job 30, 4 GPUs", 4)
    job(2, 0, 2, TEAL, "job 31, time 2h: starts")
    c.line(x(3), top - 14, x(3), top + 4 * (height + 6), PURPLE, 2)
    base = top + 4 * (height + 6) + 26
    for row, words in enumerate([
            "Jobs 21 and 22 end by 15:00 at the latest: their limits say so. All cards are held for job 30 until then.",
            "Job 31 is over by 14:00, so it takes a held card meanwhile.",
            "Job 32 (time 4h) and job 33 (no time limit) could still be there at 15:00: they wait."]):
        c.text(24, base + row * 19, words, 12)
    c.legend(24, base + 76, [(BLUE, "runs"), (TEAL, "overtakes"), (PURPLE, "job 30"),
                             (c.hatch("#d9cbe8"), "held for job 30")])


@picture("layers", 720, 262, "The closest layer that has a value wins")
def layers(c):
    c.text(24, 30, "max_utilization of job 7: the closest layer that says something", 15, weight="bold")
    rows = [("job", "keys of the job file, berth add --rule, berth set 7 KEY=VALUE", None),
            ("batch", "rules: of the job file, berth set --batch 3", "40"),
            ("queue", "queues: of a job file, berth set --queue night", "20"),
            ("berth set", "for this run of the daemon", None),
            ("berth.yaml", "what berth set --save writes", "10"),
            ("default", "built in", "30")]
    for index, (name, where, value) in enumerate(rows):
        y = 46 + index * 33
        wins = index == 1
        c.rect(24, y, 672, 28, "#dce9f7" if wins else WHITE, BLUE if wins else GRID, radius=4, thick=2 if wins else 1)
        c.text(38, y + 19, name, 13, INK, None, "bold")
        c.text(150, y + 19, where, 12, FAINT)
        c.text(560, y + 19, value or "\N{EN DASH}", 13, INK if wins else FAINT, "end", "bold" if wins else None)
        if wins:
            c.text(684, y + 19, "40 holds", 13, BLUE, "end", "bold")
