"""The iterators of `itertools`. Items are asked for in CPython's order, and no earlier than there.

A function that must look at its arguments when it is called returns the generator of another one.
"""

from __future__ import annotations


def chain(*iterables):
    for iterable in iterables:
        yield from iterable


def chain_from_iterable(iterables):
    for iterable in iterables:
        yield from iterable


def count(start=0, step=1):
    while True:
        yield start
        start += step


def cycle(iterable):
    return _cycle(iter(iterable))


def _cycle(iterator):
    saved = []
    for item in iterator:
        saved.append(item)
        yield item
    while saved:
        yield from saved


def repeat(object, *times):
    return _repeat(object, times)


def repeat_times(object, times):
    return _repeat(object, (times,))


def _repeat(item, times):
    if not times:
        while True:
            yield item
    for _ in range(*times):
        yield item


def accumulate(iterable, func=None, *, initial=None):
    return _accumulate(iter(iterable), func, initial)


def _accumulate(iterator, func, initial):
    if initial is not None:
        total = initial
    else:
        for first in iterator:
            total = first
            break
        else:
            return
    yield total
    for item in iterator:
        total = total + item if func is None else func(total, item)
        yield total


def compress(data, selectors):
    return _compress(iter(data), iter(selectors))


def _compress(data, selectors):
    for item, wanted in zip(data, selectors):
        if wanted:
            yield item


def takewhile(predicate, iterable):
    return _takewhile(predicate, iter(iterable))


def _takewhile(predicate, iterator):
    for item in iterator:
        if not predicate(item):
            return
        yield item


def dropwhile(predicate, iterable):
    return _dropwhile(predicate, iter(iterable))


def _dropwhile(predicate, iterator):
    for item in iterator:
        if not predicate(item):
            yield item
            break
    yield from iterator


def filterfalse(predicate, iterable):
    return _filterfalse(predicate, iter(iterable))


def _filterfalse(predicate, iterator):
    for item in iterator:
        if not (item if predicate is None or predicate is bool else predicate(item)):
            yield item


def starmap(function, iterable):
    return _starmap(function, iter(iterable))


def _starmap(function, iterator):
    for args in iterator:
        yield function(*args)


def pairwise(iterable):
    return _pairwise(iter(iterable))


def _pairwise(iterator):
    for first in iterator:
        last = first
        break
    else:
        return
    for item in iterator:
        yield last, item
        last = item


def islice(iterable, *bounds):
    """CPython: islice_new, which checks the bounds before it looks at the iterable."""
    if len(bounds) == 1:
        start, stop, step = 0, bounds[0], 1
    else:
        start, stop, step = bounds[0], bounds[1], bounds[2] if len(bounds) == 3 else 1
    if stop is not None and stop == -1:
        raise ValueError("Stop argument for islice() must be None or an integer: 0 <= x <= sys.maxsize.")
    start = 0 if start is None else start
    step = 1 if step is None else step
    if start < 0 or stop is not None and stop < 0:
        raise ValueError("Indices for islice() must be None or an integer: 0 <= x <= sys.maxsize.")
    if step < 1:
        raise ValueError("Step for islice() must be a positive integer or None.")
    return _islice(iter(iterable), start, stop, step)


def _islice(iterator, start, stop, step):
    """CPython: islice_next."""
    count, following = 0, start
    while True:
        while count < following:
            for _ in iterator:
                break
            else:
                return
            count += 1
        if stop is not None and count >= stop:
            return
        for found in iterator:
            item = found
            break
        else:
            return
        count += 1
        following += step
        if stop is not None and following > stop:
            following = stop
        yield item


def zip_longest(*iterables, fillvalue=None):
    return _zip_longest([iter(iterable) for iterable in iterables], fillvalue)


def _zip_longest(iterators, fillvalue):
    """CPython: zip_longest_next; None takes the place of an iterator that is exhausted."""
    active = len(iterators)
    while active:
        row = []
        for index, iterator in enumerate(iterators):
            if iterator is None:
                row.append(fillvalue)
                continue
            for item in iterator:
                row.append(item)
                break
            else:
                active -= 1
                if not active:
                    return
                iterators[index] = None
                row.append(fillvalue)
        yield tuple(row)


def product(*iterables, repeat=1):
    if repeat < 0:
        raise ValueError("repeat argument cannot be negative")
    return _product([tuple(iterable) for iterable in iterables] * repeat)


def _product(pools):
    places = [0] * len(pools)
    if not all(pools):
        return
    while True:
        yield tuple([pool[place] for pool, place in zip(pools, places)])
        index = len(pools) - 1
        while index >= 0:
            places[index] += 1
            if places[index] < len(pools[index]):
                break
            places[index] = 0
            index -= 1
        else:
            return


def combinations(iterable, r):
    pool = tuple(iterable)
    if r < 0:
        raise ValueError("r must be non-negative")
    return _combinations(pool, r)


def _combinations(pool, r):
    places = list(range(r))
    size = len(pool)
    if r > size:
        return
    while True:
        yield tuple([pool[place] for place in places])
        index = r - 1
        while index >= 0 and places[index] == index + size - r:
            index -= 1
        if index < 0:
            return
        places[index] += 1
        for later in range(index + 1, r):
            places[later] = places[later - 1] + 1


def combinations_with_replacement(iterable, r):
    pool = tuple(iterable)
    if r < 0:
        raise ValueError("r must be non-negative")
    return _combinations_with_replacement(pool, r)


def _combinations_with_replacement(pool, r):
    if not pool and r:
        return
    places = [0] * r
    while True:
        yield tuple([pool[place] for place in places])
        index = r - 1
        while index >= 0 and places[index] == len(pool) - 1:
            index -= 1
        if index < 0:
            return
        place = places[index] + 1
        for later in range(index, r):
            places[later] = place


def permutations(iterable, r=None):
    pool = tuple(iterable)
    r = len(pool) if r is None else r
    if r < 0:
        raise ValueError("r must be non-negative")
    return _permutations(pool, r)


def _permutations(pool, r):
    """The places of the pool in the order of counting with no digit twice."""
    if r > len(pool):
        return
    places = list(range(r))
    while True:
        yield tuple([pool[place] for place in places])
        index = r - 1
        while index >= 0:
            taken = places[:index]
            place = places[index] + 1
            while place < len(pool) and place in taken:
                place += 1
            if place < len(pool):
                break
            index -= 1
        else:
            return
        places[index] = place
        for later in range(index + 1, r):
            place = 0
            while place in places[:later]:
                place += 1
            places[later] = place


def tee(iterable, n=2):
    if n < 0:
        raise ValueError("n must be >= 0")
    if not n:
        return ()
    iterator = iter(iterable)
    waiting: list[list[object]] = [[] for _ in range(n)]
    return tuple([_tee(iterator, waiting, own) for own in waiting])


def _tee(iterator, waiting, own):
    while True:
        if not own:
            for item in iterator:
                for each in waiting:
                    each.append(item)
                break
            else:
                return
        yield own.pop(0)


def groupby(iterable, key=None):
    return _groupby(iter(iterable), key)


def _groupby(iterator, key):
    """CPython: groupby_next, _grouper_next. `ahead` holds the next item with its key when it has been read; a group of an earlier
    `turn` is over."""
    ahead: list[tuple[object, object]] = []
    turn = [0]

    def read():
        if not ahead:
            for item in iterator:
                ahead.append((item if key is None else key(item), item))
                break
        return bool(ahead)

    def group(target, number):
        while turn[0] == number and read() and ahead[0][0] in (target,):
            yield ahead.pop()[1]

    target = None
    while True:
        turn[0] += 1
        while read() and turn[0] > 1 and ahead[0][0] in (target,):
            ahead.pop()
        if not ahead:
            return
        target = ahead[0][0]
        yield target, group(target, turn[0])


def batched(iterable, n):
    if n < 1:
        raise ValueError("n must be at least one")
    return _batched(iter(iterable), n)


def _batched(iterator, n):
    batch = []
    for item in iterator:
        batch.append(item)
        if len(batch) == n:
            yield tuple(batch)
            batch = []
    if batch:
        yield tuple(batch)
