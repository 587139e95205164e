"""Which forms name which words, in two sign languages that share some of them.

Forms repeat only where this module plants it: synonyms share a form, the second language shares forms for the same word
(cognates) or for another one (false friends). Other forms may differ in a single parameter (minimal pairs).
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import accumulate, zip_longest
from typing import Any, TypeVar

import numpy as np

from signspot.domain.recordings import Word, normalise
from signspot.domain.tracks import Floats, Ints
from signspot.errors import InputError
from signspot.world.settings import Difficulty, chance

LANGUAGE, OTHER_LANGUAGE = "qaa", "qab"  # ISO 639 reserves qaa to qtz for local use
_MOST_VARIANTS = 4
_VARIANT = 0.25  # chance that a further entry of a word shows a further form
_COMPOUNDS = 0.5  # share of two-word names signed as both parts
_COGNATES, _FALSE_FRIENDS = 0.25, 0.12  # share of the words of the second language
_MOST_DRAWS = 1000


@dataclass(frozen=True, slots=True)
class Sense:
    """One variant of a word: a form under the name of a region."""

    word: Word
    variant: str
    form_id: str


@dataclass(frozen=True, slots=True)
class _FalseFriend:
    """A form that names one word here and another there."""

    form_id: str
    word: Word
    other_word: Word


@dataclass(frozen=True, slots=True)
class Lexicon:
    """The forms of all words of one or two languages."""

    forms: Mapping[str, Form]
    senses: Mapping[Word, tuple[Sense, ...]]
    other_senses: Mapping[Word, tuple[Sense, ...]]  # of the second language
    synonyms: tuple[tuple[Word, Word], ...]
    minimal_pairs: tuple[tuple[str, str], ...]  # form ids
    false_friends: tuple[_FalseFriend, ...]

    def of_language(self, language: str) -> Mapping[Word, tuple[Sense, ...]]:
        if language not in (LANGUAGE, OTHER_LANGUAGE):
            raise InputError(language, "is not a language of the world", f"choose {LANGUAGE} or {OTHER_LANGUAGE}")
        return self.senses if language == LANGUAGE else self.other_senses


@dataclass(slots=True)
class _Inventory:
    """The forms so far; every new one differs from all before."""

    rng: np.random.Generator
    minimal_pairs: float
    forms: dict[str, Form] = field(default_factory=dict)
    known: set[Form] = field(default_factory=set)
    pairs: list[tuple[str, str]] = field(default_factory=list)

    def add(self, form: Form) -> str:
        form_id = f"f{len(self.forms):05}"
        self.forms[form_id] = form
        self.known.add(form)
        return form_id

    def new(self) -> str:
        """A form nobody has, now and then the minimal partner of an earlier one."""
        for _ in range(_MOST_DRAWS):
            partner = ""
            if self.forms and self.rng.random() < self.minimal_pairs:
                partner = f"f{int(self.rng.integers(len(self.forms))):05}"
            form = _minimal_partner(self.forms[partner], self.rng) if partner else _random_form(self.rng)
            if form not in self.known:
                form_id = self.add(form)
                if partner:
                    self.pairs.append((partner, form_id))
                return form_id
        raise InputError("world", f"no new form after {len(self.forms)}", "ask for fewer words")

    def new_compound(self, first: tuple[Sense, ...] | None, second: tuple[Sense, ...] | None) -> str:
        """The form of a two-word name: those of its parts, about every second time, or one of its own."""
        if first and second and self.rng.random() < _COMPOUNDS:
            begin, end = (self.forms[part[0].form_id] for part in (first, second))
            form = replace(end, strokes=(begin.strokes[0], end.strokes[-1]))
            return self.new() if form in self.known else self.add(form)
        return self.new()


def build_lexicon(lemmas: tuple[Lemma, ...], entry_counts: Ints, seed: int, difficulty: Difficulty) -> Lexicon:
    """The lexicon of a world: every word with one to four forms, and no more than it has dictionary entries."""
    rng = chance(seed, "lexicon")
    inventory = _Inventory(rng, difficulty.minimal_pairs)
    senses: dict[Word, tuple[Sense, ...]] = {}
    synonyms: list[tuple[Word, Word]] = []
    for lemma, entries in zip(lemmas, entry_counts, strict=True):
        if senses and rng.random() < difficulty.synonyms:
            twin = lemmas[int(rng.integers(len(senses)))].word
            synonyms.append((twin, lemma.word))
            form_ids = [senses[twin][0].form_id]
        else:
            parts = [senses.get(Word(part)) for part in lemma.word.split("-")]
            form_ids = [inventory.new_compound(*parts) if len(parts) == 2 else inventory.new()]
        further = min(int(rng.binomial(entries - 1, _VARIANT)), _MOST_VARIANTS - 1)
        senses[lemma.word] = _senses(lemma.word, form_ids + [inventory.new() for _ in range(further)])
    other, friends = _second_language(lemmas, senses, inventory)
    return Lexicon(inventory.forms, senses, other, tuple(synonyms), tuple(inventory.pairs), friends)


def _senses(word: Word, form_ids: list[str]) -> tuple[Sense, ...]:
    return tuple(Sense(word, str(number), form_id) for number, form_id in enumerate(form_ids, start=1))


def _second_language(
    lemmas: tuple[Lemma, ...], senses: Mapping[Word, tuple[Sense, ...]], inventory: _Inventory
) -> tuple[Mapping[Word, tuple[Sense, ...]], tuple[_FalseFriend, ...]]:
    """One form for every word: the first language's, that of another word, or a new one."""
    rng = inventory.rng
    words_of: dict[str, set[Word]] = {}
    for word, own in senses.items():
        for sense in own:
            words_of.setdefault(sense.form_id, set()).add(word)
    other: dict[Word, tuple[Sense, ...]] = {}
    friends: list[_FalseFriend] = []
    for lemma in lemmas:
        fate = rng.random()
        form_id = senses[lemma.word][0].form_id
        if fate >= _COGNATES:
            borrowed = senses[lemmas[int(rng.integers(len(lemmas)))].word][0].form_id
            is_friend = fate < _COGNATES + _FALSE_FRIENDS and lemma.word not in words_of[borrowed]
            form_id = borrowed if is_friend else inventory.new()
            if is_friend:
                friends += [_FalseFriend(form_id, word, lemma.word) for word in sorted(words_of[form_id])]
        other[lemma.word] = _senses(lemma.word, [form_id])
    return other, tuple(friends)


# What signs are made of: handshapes, locations, orientations and paths, and the forms they combine to. Everything is
# told for the dominant hand of a right-hander; the other hand is its mirror image. Body coordinates: the unit is the
# signer's shoulder width, the origin lies between the shoulders, x grows to the signer's left (the right of the
# picture), y grows downward, z grows away from the camera. Angles are in radians unless a name says degrees.

_T = TypeVar("_T")

FINGER_ANGLES = 20  # thumb, index, middle, ring, little: three flexions and a spread each

# Flexion of the three joints of a finger in degrees: extended, fist, curved, bent, hooked, round, slightly bent.
_FINGER = {"E": (2, 4, 2), "F": (88, 100, 62), "C": (32, 48, 30), "B": (82, 6, 4), "H": (8, 88, 58), "O": (58, 52, 34)}
_FINGER |= {"S": (38, 8, 4)}
# Thumb: opposition, flexion of two joints, and abduction from the index finger, in degrees.
_THUMB = {"o": (8, 0, 0, 62), "a": (5, 8, 5, 12), "x": (62, 48, 40, 18), "p": (72, 22, 18, 34)}
_SPREAD = (1.0, 0.25, -0.5, -1.35)  # of index to little finger, times the spread of the shape

# Thumb, four fingers, and how far the fingers spread (degrees).
_SHAPES = {
    "fist": ("xFFFF", 0), "side-thumb": ("aFFFF", 0), "thumb-up": ("oFFFF", 0), "flat": ("aEEEE", 0),
    "flat-tucked": ("xEEEE", 0), "five": ("oEEEE", 13), "four": ("xEEEE", 12), "claw": ("oHHHH", 11),
    "c": ("pCCCC", 2), "o": ("pOOOO", 0), "index": ("xEFFF", 0), "l": ("oEFFF", 0), "v": ("xEEFF", 15),
    "u": ("xEEFF", 0), "three": ("oEEFF", 14), "w": ("xEEEF", 13), "little": ("xFFFE", 0), "y": ("oFFFE", 6),
    "horns": ("xEFFE", 4), "l-y": ("oEFFE", 5), "bent-v": ("xHHFF", 13), "hook": ("xHFFF", 0),
    "hook-l": ("oHFFF", 0), "ring": ("pOEEE", 11), "eight": ("pEOEE", 10), "bent": ("aBBBB", 0),
    "beak": ("pBBBB", 0), "small-c": ("pCFFF", 0), "pinch": ("pBFFF", 0), "k": ("pESFF", 8),
    "double-ring": ("pOOEE", 9), "bent-three": ("oHHFF", 12),
}  # fmt: skip
SHAPES: dict[str, Floats] = {}  # (20,) joint angles
for _name, (_codes, _degrees) in _SHAPES.items():
    _rows = [(*_FINGER[code], _degrees * share) for code, share in zip(_codes[1:], _SPREAD, strict=True)]
    SHAPES[_name] = np.radians([_THUMB[_codes[0]], *_rows]).ravel()

# Where the middle of the palm goes.
_LOCATIONS = {
    "forehead": (-0.06, -1.00, -0.42), "temple": (-0.32, -0.90, -0.26), "eye": (-0.14, -0.80, -0.44),
    "nose": (0.00, -0.68, -0.48), "cheek": (-0.26, -0.62, -0.34), "ear": (-0.42, -0.74, -0.10),
    "mouth": (-0.03, -0.52, -0.48), "chin": (-0.02, -0.36, -0.44), "neck": (-0.06, -0.14, -0.36),
    "shoulder": (-0.44, 0.04, -0.28), "far-shoulder": (0.36, 0.06, -0.36), "chest": (-0.08, 0.34, -0.38),
    "far-chest": (0.22, 0.40, -0.42), "belly": (-0.04, 0.86, -0.44), "upper-arm": (0.46, 0.42, -0.34),
    "before-face": (-0.16, -0.50, -0.86), "high-space": (-0.52, -0.34, -0.74), "middle-space": (-0.22, 0.42, -0.86),
    "side-space": (-0.72, 0.26, -0.60), "low-space": (-0.26, 0.90, -0.66), "far-space": (0.26, 0.36, -0.80),
}  # fmt: skip
LOCATIONS = {name: np.array(point, dtype=np.float64) for name, point in _LOCATIONS.items()}

# Degrees (swing, tilt, roll): fingers up and palm to the camera, then rolled about the fingers (90: palm to the other
# side, 180: to the signer), swung in the picture (90: fingers to the other side), tilted about x (90: up is forward).
_ORIENTATIONS = {
    "up-out": (8, 10, 5), "up-in": (10, 5, 172), "up-side": (5, 12, 90), "forward-down": (12, 76, 0),
    "forward-side": (10, 72, 88), "forward-up": (10, 78, 176), "side-in": (72, 5, 170), "side-down": (72, 72, 0),
    "side-up": (66, 76, 172), "down-in": (8, 142, 4),
}  # fmt: skip
ORIENTATIONS = {name: np.radians(degrees) for name, degrees in _ORIENTATIONS.items()}

# Where a path goes and to which side it bows. Those in depth also rise or fall: a camera in front must see them.
_DIRECTIONS = {
    "up": ((0, -1, 0), (0, 0, -1)), "down": ((0, 1, 0), (0, 0, -1)), "across": ((1, 0, 0), (0, -1, 0)),
    "outward": ((-1, 0, 0), (0, -1, 0)),
    "forward": ((0, 0.7, -1), (0, -1, -0.7)), "back": ((0.2, -0.7, 1), (-1, 0, 0.2)),
    "diagonal": ((0.7, 0.7, 0), (0.7, -0.7, 0)),
}  # fmt: skip
DIRECTIONS = {name: np.array(axes) / np.linalg.norm(axes, axis=1, keepdims=True) for name, axes in _DIRECTIONS.items()}

PATHS = ("straight", "arc", "circle", "zigzag", "tap", "hold")
_PLACE = 0.36  # every form has its own place around the middle of its location
_PLACE_AT_BASE = 0.1  # a hand stays with its base
SIZES = (0.2, 0.36, 0.56)  # shoulder widths


class Hands(StrEnum):
    """What the other hand does."""

    ONE = "one"
    SYMMETRIC = "symmetric"
    ALTERNATING = "alternating"
    BASE = "base"  # it holds still under or behind the dominant hand


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stroke:
    """One posture and its movement."""

    shape: str
    final_shape: str
    location: str
    place: tuple[float, float, float] = (0.0, 0.0, 0.0)  # from the middle of the location, shoulder widths
    orientation: str
    final_orientation: str
    path: str
    direction: str
    size: int  # of SIZES
    repetitions: int


@dataclass(frozen=True, slots=True)
class Form:
    """How a sign is performed: one stroke, or two of a compound."""

    strokes: tuple[_Stroke, ...]
    hands: Hands = Hands.ONE
    base_shape: str = "flat"  # of the other hand where it is a base


_SHAPE_CHANGES = (("fist", "five"), ("o", "five"), ("flat", "bent"), ("beak", "five"), ("claw", "fist"),
                  ("v", "bent-v"), ("index", "hook"), ("five", "beak"), ("l", "pinch"),
                  ("three", "bent-three"))  # fmt: skip
_BASES = ("flat", "fist", "index", "five", "c")


def _random_form(rng: np.random.Generator) -> Form:
    hands = _pick(rng, tuple(Hands), (0.50, 0.24, 0.09, 0.17))
    shape = final_shape = _pick(rng, tuple(SHAPES))
    if rng.random() < 0.22:
        shape, final_shape = _SHAPE_CHANGES[rng.integers(len(_SHAPE_CHANGES))]
    orientation = final_orientation = _pick(rng, tuple(ORIENTATIONS))
    if rng.random() < 0.18:
        final_orientation = _pick(rng, tuple(ORIENTATIONS))
    path = _pick(rng, PATHS, (0.32, 0.2, 0.15, 0.1, 0.15, 0.08))
    if path == "hold" and shape == final_shape and orientation == final_orientation:
        path = "tap"  # a sign moves
    reach = _PLACE_AT_BASE if hands is Hands.BASE else _PLACE
    location = "middle-space" if hands is Hands.BASE else _pick(rng, tuple(LOCATIONS))
    x, y, z = np.round(rng.uniform(-reach, reach, 3), 3).tolist()
    stroke = _Stroke(
        shape=shape,
        final_shape=final_shape,
        location=location,
        place=(x, y, 0.5 * z),
        orientation=orientation,
        final_orientation=final_orientation,
        path=path,
        direction=_pick(rng, tuple(DIRECTIONS)),
        size=int(rng.integers(len(SIZES))),
        repetitions=_pick(rng, (1, 2, 3), (0.6, 0.3, 0.1)),
    )
    return Form((stroke,), hands, _pick(rng, _BASES) if hands is Hands.BASE else "flat")


def _minimal_partner(form: Form, rng: np.random.Generator) -> Form:
    which = int(rng.integers(len(form.strokes)))
    stroke = form.strokes[which]
    options = {"shape": tuple(SHAPES), "orientation": tuple(ORIENTATIONS), "path": PATHS[:-1]}
    if form.hands is not Hands.BASE:
        options["location"] = tuple(LOCATIONS)
    kind = _pick(rng, tuple(options))
    value = _pick(rng, tuple(option for option in options[kind] if option != getattr(stroke, kind)))
    changes: dict[str, Any] = {kind: value}
    if kind in ("shape", "orientation"):
        changes[f"final_{kind}"] = value
    changed = replace(stroke, **changes)
    return replace(form, strokes=(*form.strokes[:which], changed, *form.strokes[which + 1 :]))


def _pick(rng: np.random.Generator, options: tuple[_T, ...], odds: tuple[float, ...] | None = None) -> _T:
    if odds is None:
        return options[int(rng.integers(len(options)))]
    upto = tuple(accumulate(odds))
    return options[bisect(upto, float(rng.random()) * upto[-1])]


# The English words of the world: plain ones by kind, and two-word names made of them. The list was written for this
# world, so it is the same everywhere and belongs to nobody else. About a thousand plain words (lemmas) stand before
# thousands of compounds such as "school-teacher": the frequent words of a language are short.

_PEOPLE = """actor aunt baby baker boss boy brother builder butcher captain child cook cousin customer dancer daughter
dentist doctor driver expert family farmer father friend gardener girl grandmother guest guide hero hunter judge king
lawyer leader manager mayor minister mother neighbour nurse officer owner painter parent patient pilot player poet
president prince prisoner queen reporter sailor scientist secretary singer sister soldier son student teacher tourist
twin uncle visitor waiter winner worker writer"""
_PLACES = """airport bank bathroom beach bedroom border bridge castle cave cellar church cinema city college corner
country court desert factory farm field forest garden gate hall harbour hill home hospital hotel house island kitchen
lake library market meadow mountain museum office palace park path playground pond prison pub restaurant river road
roof school shop stadium station street studio theatre tower town tunnel valley village yard zoo"""
_THINGS = """bag ball basket bed bell belt bicycle blanket boat book bottle bowl box brush bucket bus button camera
candle car card chair clock coat computer cup curtain desk door drawer dress drum engine fence flag fork glove guitar
hammer hat helmet jacket jar key kettle knife ladder lamp letter lock machine map mirror money needle newspaper page
parcel pencil piano picture pillow pipe plane plate pocket pot present prize radio ring rope sail saw scarf ship shirt
shoe shovel sock sofa spoon stamp suitcase sword table telephone television tent ticket towel toy train tray trousers
truck umbrella wallet watch wheel window"""
_STUFF = """brick cardboard clay coal copper cotton diamond glass gold iron leather metal paper plastic rubber sand
silk silver steel stone wood wool"""
_FOOD = """apple bacon banana bean beer berry biscuit bread butter cabbage cake carrot cheese cherry chicken chocolate
coffee cream egg fish flour fruit garlic grape ham honey jam juice lemon lunch meal meat melon milk mushroom nut onion
orange pasta pea peach pear pepper pie pizza plum potato pudding rice salad salt sandwich sauce sausage soup sugar tea
tomato vegetable wine"""
_ANIMALS = """ant bear bee bird bull butterfly camel cat cow crab crocodile dog donkey dragon duck eagle elephant fox
frog giraffe goat hen horse insect kitten lamb lion monkey owl parrot pig pigeon puppy rabbit rat shark sheep snail
snake spider squirrel swan tiger turtle whale worm zebra"""
_BODY = """ankle arm beard blood bone brain cheek chest chin ear elbow eye face finger hair hand head heart knee leg
lip lung mouth muscle neck nose shoulder skin stomach thumb toe tongue tooth wrist"""
_NATURE = """branch cloud coast earth fire flood flower fog grass ice lightning moon ocean plant rain rainbow rock
root sea seed shadow sky smoke snow star storm sun thunder tree water wave weather wind"""
_TIMES = """autumn birthday century christmas easter evening friday holiday hour minute monday month morning night
saturday season second spring summer sunday thursday tuesday wednesday week weekend winter year"""
_DOINGS = """accident adventure art ballet battle business ceremony chess competition concert conversation course
crime discussion exam exercise experiment festival football funeral game golf history hobby interview job journey
language lesson magic marriage mathematics medicine meeting music opera party performance poetry politics project
protest race rugby science show speech sport story strike surgery swimming tennis test tour trade traffic war
wedding"""
_IDEAS = """accent advantage advice age amount anger army attention attitude average beauty behaviour belief benefit
bill budget career cause chance character choice circle colour comfort community company confidence connection culture
damage danger deaf debate decision degree detail difference disease doubt dream duty economy edge education effort
election emergency emotion energy environment error evidence example experience fact fear feeling flight freedom fuel
fun future goal government group growth guilt habit happiness health height hope humour idea identity importance
industry information injury insurance interest invention joke joy justice kind knowledge law level limit list luck map
mark memory message method middle mind mistake mood name nation nature news noise number opinion opportunity order
pain parliament part passion past peace pension percentage period permission plan population position poverty power
pressure price pride problem process product profit progress promise purpose quality quantity question queue reason
recipe religion rent report respect result risk role row rule safety salary secret sense service shape shock sign
silence situation size skill smell society song sound space speed spirit square stage strength stress style subject
success support surprise system talent task taste tax technology temperature theory topic trouble trust truth vaccine
value victory view violence virus voice vote wage wealth weight wish word world"""
_VERBS = """accept add admire admit agree allow announce answer appear apologise argue arrange arrive ask attack avoid
bake beg begin believe belong blame boil borrow bounce breathe bring bury buy calculate call care carry catch
celebrate change chase choose clap clean climb close collect communicate compare complain contain continue copy count
cough crash create cry dance decide decorate defend deliver deny describe destroy dig disappear disappoint discover
divide drag dream dress drink drop earn eat employ encourage enjoy enter escape examine expect explain explode fail
fetch fight fill finish float fold follow forbid force forget forgive freeze frighten gather give grab greet grow
guess happen hate heal help hide hire hurry identify ignore imagine improve include increase inform insult introduce
invent invite join jump kick kill kiss kneel knit knock know laugh learn lend lift listen live look lose love marry
measure mend move need obey offer open paint park pay persuade phone point pour practise pray predict prepare pretend
prevent produce protect prove provide publish pull punish push reach realise receive recognise recommend reduce refuse
relax remember remove rent repair repeat replace rescue return ride rush save scream search sell send separate serve
share shave shout show sing sit sleep smile sneeze solve speak spell stare start steal stop stretch study suffer
suggest surround survive suspect swallow swim talk teach tell think throw touch translate travel try type understand
use vanish visit wait walk want warn wash waste welcome whisper win wipe wonder work worry wrap write yawn"""
_ADJECTIVES = """afraid alone ancient angry annoyed awful bad beautiful big bitter black blind blue boring brave
bright brown busy calm careful cheap clever cold comfortable common confused cool cruel curious dangerous dark dead
deep delicious different difficult dirty dry early easy embarrassed empty equal excited expensive famous fast fat
favourite flat foreign fragile free fresh friendly full funny gentle glad good great green grey guilty happy hard
heavy high honest horrible hot huge hungry important impossible innocent jealous keen kind large late lazy lonely long
loud lucky mad modern narrow nasty natural nervous new nice normal old perfect pink polite poor popular
possible pregnant private proud public purple quick quiet ready real red responsible rich rough round rude sad safe
serious sharp short shy sick silly simple slim slow small smart smooth soft sour special strange strict strong
stubborn stupid suitable sweet tall terrible thick thin thirsty tidy tired tiny true ugly unfair useful useless
violent warm weak wet white wide wild wise wrong yellow young"""

_NOUNS = (_PEOPLE, _PLACES, _THINGS, _STUFF, _FOOD, _ANIMALS, _BODY, _NATURE, _TIMES, _DOINGS, _IDEAS)

# Which kinds make a two-word name: the first describes the second.
_PAIRS = (
    (_PLACES, _PEOPLE), (_STUFF, _THINGS), (_FOOD, _THINGS), (_ANIMALS, _PLACES), (_TIMES, _DOINGS), (_DOINGS, _PEOPLE),
    (_NATURE, _PLACES), (_FOOD, _PEOPLE), (_DOINGS, _THINGS), (_PLACES, _THINGS),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Lemma:
    """A word of the world and what a sentence may do with it."""

    word: Word
    kind: str  # noun, verb, adjective


def _plain_lemmas() -> tuple[Lemma, ...]:
    """All plain words, the kinds mixed; a word of two kinds counts as the first."""
    kinds = {"adjective": _ADJECTIVES.split(), "noun": " ".join(_NOUNS).split(), "verb": _VERBS.split()}
    found: dict[Word, Lemma] = {}
    for kind, words in kinds.items():
        for word in words:
            found.setdefault(normalise(word), Lemma(normalise(word), kind))
    return tuple(found.values())


def _compound_lemmas() -> Iterator[Lemma]:
    """Two-word names, the pairs of kinds in turn."""
    columns = ([f"{a}-{b}" for a in first.split() for b in second.split() if a != b] for first, second in _PAIRS)
    mixed = [column[i * 7919 % len(column)] for column in columns for i in range(len(column))]
    return (Lemma(normalise(name), "noun") for name in dict.fromkeys(mixed))


def english_lemmas(n: int, rng: np.random.Generator) -> tuple[Lemma, ...]:
    """Draw n words, the most frequent first: plain ones, then compounds, with every kind in a row like any text."""
    plain = _plain_lemmas()
    by_kind = [[lemma for lemma in plain if lemma.kind == kind] for kind in ("noun", "verb", "adjective")]
    nouns, verbs, adjectives = ([drawn[i] for i in rng.permutation(len(drawn))] for drawn in by_kind)
    # Two nouns for each verb and adjective, as the sentences need them.
    rows = zip_longest(nouns[::2], nouns[1::2], verbs, adjectives)
    mixed = [lemma for row in rows for lemma in row if lemma is not None]
    if n > len(mixed):
        compounds = list(_compound_lemmas())
        if n - len(mixed) > len(compounds):
            fix = f"ask for at most {len(mixed) + len(compounds)}"
            raise InputError("world", f"{n} words are more than it has", fix)
        mixed += [compounds[i] for i in rng.choice(len(compounds), n - len(mixed), replace=False)]
    return tuple(mixed[:n])


_IRREGULAR = {
    "child": "children", "tooth": "teeth", "knife": "knives",
    "potato": "potatoes", "tomato": "tomatoes", "hero": "heroes",
    "begin": "began", "bring": "brought", "buy": "bought", "catch": "caught", "choose": "chose", "dig": "dug",
    "drink": "drank", "eat": "ate", "fight": "fought", "forget": "forgot", "give": "gave", "grow": "grew",
    "hide": "hid", "know": "knew", "lend": "lent", "lose": "lost", "pay": "paid", "ride": "rode", "sell": "sold",
    "send": "sent", "sing": "sang", "sit": "sat", "sleep": "slept", "speak": "spoke",
    "steal": "stole", "swim": "swam", "teach": "taught", "tell": "told", "think": "thought", "throw": "threw",
    "understand": "understood", "win": "won", "write": "wrote", "forbid": "forbade", "forgive": "forgave",
    "freeze": "froze", "kneel": "knelt",
}  # fmt: skip
_UNCOUNTED = ("sheep", "fish", "sky", "money", "news", "trousers", "mathematics", "politics", "advice", "information")
_DOUBLING = ("admit", "beg", "clap", "drag", "drop", "grab", "knit", "stop", "wrap")


def _plural(noun: str) -> str:
    """The plural of a noun, of the last part of a compound."""
    head, dash, last = noun.rpartition("-")
    if last in _UNCOUNTED:
        return noun
    return head + dash + (_IRREGULAR.get(last) or _with_s(last))


def _past(verb: str) -> str:
    if verb in _IRREGULAR:
        return _IRREGULAR[verb]
    if verb.endswith("e"):
        return verb + "d"
    if verb.endswith("y") and verb[-2] not in "aeiou":
        return verb[:-1] + "ied"
    return verb + (verb[-1] if verb in _DOUBLING else "") + "ed"


def _with_s(word: str) -> str:
    if word.endswith(("s", "x", "z", "ch", "sh")):
        return word + "es"
    if word.endswith("y") and word[-2] not in "aeiou":
        return word[:-1] + "ies"
    return word + "s"


# Subtitles: vocabulary words, inflected, inside grammatical filler that nobody signs.

# N singular, P plural, V third person, D past, I base form, A adjective; the rest is said as it stands. No two nouns
# stand side by side, or they would read as a two-word name.
_PATTERNS = (
    "the A N V a N because the P D the A N",
    "when the N D the P , a N V the A N near the N",
    "P will I the A N , but the N V the P with a N",
    "the N and the N D to I a A N for the P",
    "this N was A , so the A P D the N of the N in the N",
    "there is a A N at the N , and it V the P that the N D with the P",
    "they D the A N while the P I a N",
    "the A N of the N V that the P will I the A N near the N and the N",
    "we can I the P , and she D the A N for a N in the A N",
)
_KIND = {"N": "noun", "P": "noun", "V": "verb", "D": "verb", "I": "verb", "A": "adjective"}
_INFLECTED = {"P": _plural, "V": _with_s, "D": _past}


@dataclass(frozen=True, slots=True)
class Sentence:
    """What is said, and which words of the vocabulary it mentions, in order."""

    text: str
    lemmas: tuple[Lemma, ...]
    target: int | None = None  # the place in `lemmas` of a word the sentence was made for


@dataclass(frozen=True, slots=True, eq=False)
class Pool:
    """Words to draw from, kind by kind, some more often than others."""

    lemmas: Mapping[str, tuple[Lemma, ...]]
    upto: Mapping[str, Floats]  # cumulative shares, ending with 1

    @classmethod
    def of(cls, lemmas: Sequence[Lemma], weights: Floats) -> Pool:
        kinds = {lemma.kind for lemma in lemmas}
        places = {kind: [i for i, lemma in enumerate(lemmas) if lemma.kind == kind] for kind in sorted(kinds)}
        sums = {kind: np.cumsum(weights[place]) for kind, place in places.items()}
        own = {kind: tuple(lemmas[i] for i in place) for kind, place in places.items()}
        return cls(own, {kind: total / total[-1] for kind, total in sums.items()})

    def draw(self, kind: str, rng: np.random.Generator) -> Lemma:
        place = np.searchsorted(self.upto[kind], rng.random(), side="right")
        return self.lemmas[kind][min(int(place), len(self.lemmas[kind]) - 1)]

    def draw_sentence(self, rng: np.random.Generator, targets: Pool | None = None) -> Sentence:
        """A sentence of about eight vocabulary words; with `targets`, one of them is drawn from there."""
        parts = _PATTERNS[int(rng.integers(len(_PATTERNS)))].split()
        slots = [part for part in parts if part in _KIND]
        target = None
        if targets is not None:
            target = int(rng.choice([i for i, slot in enumerate(slots) if _KIND[slot] in targets.lemmas]))
        lemmas: list[Lemma] = []
        for i, slot in enumerate(slots):
            pool = targets if targets is not None and i == target else self
            for _ in range(5):  # people rarely repeat a content word within a sentence
                lemma = pool.draw(_KIND[slot], rng)
                if lemma not in lemmas:
                    break
            lemmas.append(lemma)
        said = iter(lemmas)
        text = " ".join(_written(part, next(said)) if part in _KIND else part for part in parts)
        return Sentence(text[0].upper() + text[1:].replace(" ,", ",") + ".", tuple(lemmas), target)


def _written(slot: str, lemma: Lemma) -> str:
    inflect = _INFLECTED.get(slot)
    return (inflect(lemma.word) if inflect else lemma.word).replace("-", " ")
