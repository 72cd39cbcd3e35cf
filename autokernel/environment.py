"""What the last digits of a result depend on besides data and arguments: versions and machine."""

import platform
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

import joblib
from threadpoolctl import threadpool_info

from autokernel.version import __version__

REQUIRED = ("numpy", "scipy", "scikit-learn", "joblib", "threadpoolctl")
OPTIONAL = ("matplotlib", "pandas", "polars", "rich", "skops", "distributed")
"""Packages of the extras that are used together with a fitted model."""

_ABSENT = "not installed"


@dataclass(frozen=True, slots=True)
class Environment:
    """The versions and the machine of this process, as words."""

    required: Mapping[str, str]  # this package and its requirements
    optional: Mapping[str, str]
    system: Mapping[str, str]  # Python, the platform and the cores
    libraries: Mapping[str, str]  # libraries for linear algebra and threads

    @classmethod
    def of_this_process(cls) -> "Environment":
        """Look up everything; no package is imported for it."""
        return cls(
            required={"autokernel": __version__} | _versions(REQUIRED),
            optional=_versions(OPTIONAL),
            system={
                "Python": f"{platform.python_version()} ({platform.python_implementation()})",
                "platform": platform.platform(),
                "cores": str(joblib.cpu_count()),
            },
            libraries=_libraries(),
        )

    def sections(self) -> Iterator[tuple[str, Mapping[str, str]]]:
        """Yield the title and the rows of each part."""
        yield "Required packages", self.required
        yield "Optional packages", self.optional
        yield "System", self.system
        yield "Linear algebra and threads", self.libraries


def show_versions() -> None:
    """Print the versions of this package, its dependencies, BLAS with its threads, and the system.

    This is what a report of a bug should contain. Nothing that is printed names the user or a
    folder.

    See Also
    --------
    sklearn.show_versions : The same for scikit-learn, with paths.

    Examples
    --------
    >>> import autokernel
    >>> autokernel.show_versions()  # doctest: +ELLIPSIS
    Required packages
        autokernel     ...
    """
    parts = []
    for title, rows in Environment.of_this_process().sections():
        lines = [f"    {name:<13}  {value}" for name, value in rows.items()]
        parts.append("\n".join([title, *lines]))
    print("\n\n".join(parts))


def _versions(names: Iterable[str]) -> dict[str, str]:
    """Return the installed versions of some distributions."""
    return {name: _version(name) for name in names}


def _version(name: str) -> str:
    """Return the installed version of a distribution, or words where there is none."""
    try:
        return version(name)
    except PackageNotFoundError:
        return _ABSENT


def _libraries() -> dict[str, str]:
    """Describe each library with threads that the process has loaded, equal ones once."""
    found: dict[str, list[str]] = {}
    for library in threadpool_info():
        words = [
            library["version"] or "of unknown version",
            f"threads: {library['num_threads']}",
            *(library[key] for key in ("threading_layer", "architecture") if library.get(key)),
        ]
        lines = found.setdefault(library["internal_api"], [])
        if (text := ", ".join(words)) not in lines:
            lines.append(text)
    described = {name: "; ".join(texts) for name, texts in found.items()}
    return described or {"BLAS": "none that threadpoolctl knows"}  # Accelerate of macOS
