"""A small, sound release of every source, written by hand.

A source that is listed here takes part in the fuzzing of `test_fuzz.py`. Three users
and three items are enough, with something outside ASCII in every file that may have it.
"""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tacit.data.dataset import Dataset
from tacit.data.sources import load, source

Files = dict[str, bytes]  # by their name in the release's folder


@dataclass(frozen=True)
class Release:
    """The files of a release, and the folder that holds them in the archive."""

    files: Files
    folder: str = ""
    unpacked: str = ""  # what the folder is called on disk, if the archive has none

    @property
    def place(self) -> str:
        return self.folder or self.unpacked


def write(name: str, place: Path, files: Files, *, packed: bool = True) -> Path:
    """An archive or a folder of a release with these files."""
    release = RELEASES[name]
    if not packed:
        for member, text in files.items():
            path = place / release.place / member
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text)
        return place / release.place
    path = place / source(name).archives[0]
    prefix = f"{release.folder}/" if release.folder else ""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as out:
        for member, text in files.items():
            out.writestr(prefix + member, text)
    return path


def write_ml_20m(path: Path, *, n_users: int, n_films: int) -> None:
    """An archive of ml-20m's format with invented ratings; the last user has five."""
    generator = np.random.default_rng(0)
    lines = ["userId,movieId,rating,timestamp"]
    for user in range(n_users + 1):
        size = 5 if user == n_users else 62 + user % 29
        # Everybody's films begin at another one, so that each film has users.
        films = (user * 7 + np.arange(size)) % n_films + 1
        stars = generator.integers(1, 11, size) / 2
        times = generator.integers(1_000_000_000, 1_400_000_000, size)
        rows = zip(films, stars, times, strict=True)
        lines += [f"{user + 1},{film},{star},{at}" for film, star, at in rows]
    titles = [f'{n},"Film, The {n} (1999)",Drama' for n in range(1, n_films + 1)]
    movies = "\n".join(["movieId,title,genres", *titles, ""])
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("ml-20m/ratings.csv", "\n".join([*lines, ""]))
        archive.writestr("ml-20m/movies.csv", movies)


def parsed(name: str, place: Path, files: Files | None = None) -> Dataset:
    """What a release with these files yields; its own if none are given."""
    archive = write(name, place, RELEASES[name].files if files is None else files)
    return load(name, where=archive, cache=place / "cache")


def edited(name: str, member: str, old: bytes, new: bytes) -> Files:
    """The files of a release with one piece of one file replaced."""
    files = RELEASES[name].files
    assert old in files[member]
    return files | {member: files[member].replace(old, new, 1)}


_FLAGS = "0|" * 18 + "0"
ML_100K: Files = {
    "u.data": b"2\t10\t3\t881250949\n1\t11\t5\t881250000\n2\t11\t1\t881250950\n",
    "u.user": b"1|24|M|technician|85711\n2|7|F|other|T8H1N\n3|99|F|writer|1\n",
    "u.item": (
        f"10|Caf\xe9 (1995)|01-Jan-1995||http://x|0|1|{'0|' * 16}1\n"
        f"11|unknown||||1|{'0|' * 17}0\n"
        f"12|Nobody (1990)|||u|{_FLAGS}\n"
    ).encode("latin-1"),
}
ML_1M: Files = {
    "ratings.dat": b"2::10::3::978300760\n1::11::5::978300000\n2::11::1::978300761\n",
    "users.dat": b"1::F::1::10::48067\n2::M::56::16::70072\n3::M::25::0::1\n",
    "movies.dat": (
        "10::Café (1995)::Action|Western\n11::Plain::Drama\n12::Nobody (1990)::War\n"
    ).encode("latin-1"),
}
ML_10M: Files = {
    "ratings.dat": b"2::10::3.5::978300760\n1::11::5::978300000\n2::11::0.5::978300761",
    "movies.dat": (
        "10::Café (1995)::Action|Western\n11::Plain::(no genres listed)\n"
    ).encode(),
}
ML_CSV: Files = {
    "ratings.csv": b"userId,movieId,rating,timestamp\n"
    b"2,10,3.5,978300760\n1,11,5.0,978300000\n2,11,0.5,978300761\n",
    "movies.csv": (
        'movieId,title,genres\r\n10,"Café, ""The"" (1995)",Action|Western\r\n'
        "11,Series (2006–2007),(no genres listed)\r\n"
    ).encode(),
}
FRAPPE: Files = {
    "frappe/frappe.csv": (
        "user\titem\tcnt\tdaytime\tweekday\tisweekend\thomework\tcost\tweather\tcountry"
        "\tcity\n"
        "0\t0\t1\tmorning\tsunday\tweekend\tunknown\tfree\tsunny\tCuraçao\t0\n"
        "4\t1\t428\tnight\tmonday\tworkday\thome\tpaid\tunknown\tSpain\t147\n"
        "0\t0\t7\tnoon\tfriday\tworkday\twork\tfree\tcloudy\tunknown\t369\n"
    ).encode(),
    "frappe/meta.csv": (
        "item\tpackage\tcategory\tdownloads\tdeveloper\ticon\tlanguage\tdescription"
        "\tname\tprice\trating\tshort desc\n"
        '0\tcom.a\tTools\t10,000+\tAny\thttp://a\ten\t"Say ""hé"""\tA tool'
        "\t$2.99\t4.5\tShort.\n"
        + "\t".join(["1", *["unknown"] * 11])
        + "\n2\tc\tTools\t1 - 5\tAny\tu\ten\tNobody has it\tC\tFree\t4.29999995\t\n"
    ).encode(),
}
CITEULIKE: Files = {
    "users.dat": b"2 2 0\n0\n3 0 3 0\n1 3",
    "item-tag.dat": b"2 1 0\n0\n1 2\n1 0\n",
    "citations.dat": b"2 2 3\n0\n1 0\n1 0\n",
    "tags.dat": "réseau\nbayesian\nold_idea".encode(),
}
STEAM: Files = {
    "steam-200k.csv": (
        '151,"Café, the game",purchase,1.0,0\n151,"Café, the game",play,27.5,0\n'
        '151,"Spore",purchase,1.0,0\n99,"Spore",purchase,1.0,0\n99,"Spore",play,0.1,0\n'
        '151,"Spore",purchase,1.0,0\n151,"Spore",play,2.0,0\n'
    ).encode(),
}
LASTFM: Files = {
    "user_artists.dat": b"userID\tartistID\tweight\r\n2\t51\t13883\r\n2\t53\t4\r\n"
    b"7\t51\t90\r\n",
    "artists.dat": (
        "id\tname\turl\tpictureURL\n"
        '53\t"Weird Al"\thttp://last/weird\thttp://p\n'
        "52\tNobody\thttp://last/nobody\thttp://p\n"
        "51\tBjörk\thttp://last/bjork\thttp://p\n"
    ).encode(),
    "tags.dat": "tagID\ttagValue\r\n1\tmétal\r\n2\tpop\r\n4\tnever\r\n".encode(),
    "user_taggedartists.dat": b"userID\tartistID\ttagID\tday\tmonth\tyear\r\n"
    b"7\t51\t2\t1\t4\t2009\r\n2\t53\t1\t1\t4\t2009\r\n7\t51\t1\t1\t4\t2009\r\n"
    b"7\t53\t2\t1\t4\t2009\r\n2\t99\t2\t1\t4\t2009\r\n8\t51\t2\t1\t4\t2009\r\n",
    "user_friends.dat": b"userID\tfriendID\r\n2\t7\r\n7\t2\r\n7\t8\r\n8\t7\r\n",
}
FILMTRUST: Files = {
    "ratings.txt": b"1 5 2\r\n1 7 4\r\n3 5 3.5\r\n1 5 0.5\r\n",
    "trust.txt": b"3 1 1\r\n3 9 1\r\n9 1 1\r\n",
}
MIND: Files = {
    "news.tsv": (
        "N1\tsports\tgolf\tA Café\tAbstract one\thttps://x\t[]\t[]\n"
        'N3\tnews\tworld\t"Quoted"\tMore\t\t[{"Label": "x"}]\t[]\n'
    ).encode(),
    "behaviors.tsv": (
        b"7\tU2\t11/12/2019 2:14:46 PM\tN1 N3 N1\tN1-0 N3-1\n"
        b"3\tU1\t11/9/2019 12:00:01 AM\t\tN1-1\n"
    ),
}
NETFLIX: Files = {
    "movie_titles.txt": (
        b"1,2003,Dinosaur Planet\n2,NULL,Caf\xe9, the film\n3,1997,Character\n"
    ),
    "combined_data_1.txt": (
        b"1:\n7,3,2005-09-06\n2649429,4,2004-02-29\n"
        b"2:\n7,5,1999-12-31\n9,1,2005-09-05\n"
    ),
}
RELEASES: Mapping[str, Release] = {
    "movielens-100k": Release(ML_100K, "ml-100k"),
    "movielens-1m": Release(ML_1M, "ml-1m"),
    "movielens-10m": Release(ML_10M, "ml-10M100K"),
    "movielens-20m": Release(ML_CSV, "ml-20m"),
    "movielens-25m": Release(ML_CSV, "ml-25m"),
    "movielens-latest": Release(ML_CSV, "ml-latest"),
    "movielens-latest-small": Release(ML_CSV, "ml-latest-small"),
    "frappe": Release(FRAPPE, "Mobile_Frappe"),
    "citeulike-a": Release(CITEULIKE, "citeulike-a"),
    "steam-200k": Release(STEAM, unpacked="steam-200k"),
    "lastfm": Release(LASTFM, unpacked="hetrec2011-lastfm-2k"),
    "mind-small-sample": Release(MIND, unpacked="MINDsmall_train_sample"),
    "netflix-prize": Release(NETFLIX, "nf_prize_dataset"),
    "filmtrust": Release(FILMTRUST, unpacked="filmtrust"),
}
