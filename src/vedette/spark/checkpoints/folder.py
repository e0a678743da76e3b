"""Files of a checkpoint, in any file system that Spark can reach. It needs a classic session, not Spark Connect."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from vedette.errors import PipelineError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Folder:
    """A folder, and paths below it."""

    spark: SparkSession
    path: str

    @property
    def _jvm(self) -> Any:
        if not hasattr(self.spark, "_jsparkSession"):
            raise PipelineError("files of a checkpoint cannot be written through Spark Connect; use a classic session")
        return self.spark._jvm

    @property
    def _conf(self) -> Any:
        return self.spark._jsparkSession.sessionState().newHadoopConf()

    def _at(self, name: str = "") -> tuple[Any, Any]:
        """The file system and the path of a file."""
        fs = self._jvm.org.apache.hadoop.fs
        path = fs.Path(f"{self.path}/{name}" if name else self.path)
        system = path.getFileSystem(self._conf)
        return system, system.makeQualified(path)

    @property
    def address(self) -> str:
        """The full path, as Spark writes it."""
        return str(self._at()[1].toString())

    def exists(self, name: str = "") -> bool:
        system, path = self._at(name)
        return bool(system.exists(path))

    def list(self, name: str = "") -> list[str]:
        """The names in a folder; empty if it does not exist."""
        system, path = self._at(name)
        if not system.exists(path):
            return []
        return sorted(str(status.getPath().getName()) for status in system.listStatus(path))

    def read(self, name: str) -> str:
        system, path = self._at(name)
        stream = system.open(path)
        try:
            return str(self._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
        finally:
            stream.close()

    def write(self, name: str, text: str) -> None:
        """Write a file; it is replaced if it exists."""
        system, path = self._at(name)
        stream = system.create(path, True)
        try:
            stream.write(text.encode())
        finally:
            stream.close()

    def copy(self, name: str, to: Folder, to_name: str | None = None) -> None:
        """Copy a file, or a folder with all below it."""
        system, path = self._at(name)
        other_system, other_path = to._at(name if to_name is None else to_name)
        other_system.mkdirs(other_path.getParent())
        self._jvm.org.apache.hadoop.fs.FileUtil.copy(system, path, other_system, other_path, False, True, self._conf)

    def delete(self, name: str = "") -> None:
        system, path = self._at(name)
        system.delete(path, True)

    def rename(self, to: Folder) -> None:
        """Rename the folder. Raises PipelineError if the file system refuses."""
        system, path = self._at()
        if not system.rename(path, to._at()[1]):
            raise PipelineError(f"cannot rename {self.path} to {to.path}")

    def rename_below(self, name: str, to_name: str) -> None:
        """Rename a file or folder below this one."""
        Folder(self.spark, f"{self.path}/{name}").rename(Folder(self.spark, f"{self.path}/{to_name}"))
