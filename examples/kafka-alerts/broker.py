"""A private Kafka broker on the loopback interface: one process in KRaft mode, with its data in one folder.

The broker and the tools that write and read topics run from the jars that `scripts/fetch-kafka` downloads.
"""

from __future__ import annotations

import json
import random
import shutil
import socket
import subprocess
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

CLUSTER = "VedetteKafkaExampleAAA"  # sixteen bytes as Kafka writes them; each broker here is a cluster of one

FETCH = Path(__file__).parents[2] / "scripts" / "fetch-kafka"

SETTINGS = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
controller.listener.names=CONTROLLER
log.dirs={folder}/logs
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
"""


class KafkaMissing(RuntimeError):  # noqa: N818
    """The broker or the connector is not available; the message says why."""


def fetch(seconds: float = 600) -> Path:
    """The folder with the jars of the broker and of Spark's connector, which are downloaded if they are missing."""
    if shutil.which("java") is None:
        raise KafkaMissing("java is not on the PATH")
    try:
        done = subprocess.run([str(FETCH)], capture_output=True, text=True, timeout=seconds)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise KafkaMissing(f"scripts/fetch-kafka failed: {error}") from None
    if done.returncode != 0:
        raise KafkaMissing(" ".join(done.stderr.split())[:500] or "scripts/fetch-kafka failed")
    return Path(done.stdout.strip())


@dataclass
class Broker:
    """A broker that runs until `stop`, and its tools."""

    jars: Path
    folder: Path
    port: int
    processes: list[subprocess.Popen[Any]] = field(default_factory=list)

    @classmethod
    def start(cls, jars: Path, folder: Path, seconds: float = 300) -> Broker:
        """A new, empty broker in the folder; returns when it answers."""
        folder.mkdir(parents=True, exist_ok=True)
        port, controller = _free_ports(2)
        broker = cls(jars, folder, port)
        settings = folder / "server.properties"
        settings.write_text(SETTINGS.format(port=port, controller=controller, folder=folder))
        broker.run("kafka.tools.StorageTool", "format", "--cluster-id", CLUSTER, "--config", settings)
        broker.spawn("kafka.Kafka", settings, name="broker")
        broker._wait(seconds)
        return broker

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def create(self, topic: str, partitions: int = 1) -> None:
        """Create a topic."""
        where = ("--bootstrap-server", self.address, "--topic", topic, "--partitions", partitions)
        self.run("org.apache.kafka.tools.TopicCommand", "--create", *where, "--replication-factor", 1)

    def write(self, topic: str, messages: Iterable[tuple[str, Any]]) -> None:
        """Write messages: a key, and a value that is converted to JSON. Messages of a key stay in order."""
        lines = "".join(f"{key}\t{json.dumps(value)}\n" for key, value in messages)
        where = ("--bootstrap-server", self.address, "--topic", topic, "--producer-property", "linger.ms=5")
        keyed = ("--property", "parse.key=true", "--property", "key.separator=\t")
        self.run("org.apache.kafka.tools.ConsoleProducer", *where, *keyed, lines=lines)

    def follow(self, topic: str) -> Path:
        """A file to which all messages of a topic are appended, one line each."""
        where = ("--bootstrap-server", self.address, "--topic", topic, "--from-beginning")
        return self.spawn("org.apache.kafka.tools.consumer.ConsoleConsumer", *where, name=f"topic-{topic}")

    def run(self, program: str, *arguments: Any, lines: str = "") -> None:
        """Run one of Kafka's programs to its end."""
        done = subprocess.run(
            self._command(program, arguments), input=lines, text=True, capture_output=True, timeout=300
        )
        if done.returncode != 0:
            raise RuntimeError(f"{program} failed: {done.stderr or done.stdout}")

    def spawn(self, program: str, *arguments: Any, name: str) -> Path:
        """Start one of Kafka's programs. Returns the file that it writes to."""
        out = self.folder / f"{name}.out"
        with out.open("wb") as output, (self.folder / f"{name}.err").open("wb") as errors:
            command = self._command(program, arguments)
            self.processes.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=errors))
        return out

    def stop(self) -> None:
        """Stop the broker and all programs that still run."""
        for process in reversed(self.processes):
            process.kill()
            process.wait()

    def _command(self, program: str, arguments: tuple[Any, ...]) -> list[str]:
        java = ["java", "-Xmx512m", "-XX:TieredStopAtLevel=1", "-cp", f"{self.jars / 'broker'}/*"]
        return [*java, program, *map(str, arguments)]

    def _wait(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until and self.processes[0].poll() is None:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
                return
            except OSError:
                time.sleep(0.1)
        complaint = (self.folder / "broker.err").read_text() + (self.folder / "broker.out").read_text()
        self.stop()
        raise RuntimeError(f"the broker did not start: {complaint[-2000:]}")


def _free_ports(n: int) -> list[int]:
    """Free ports of the loopback interface, below 32768, where the system's own ports begin."""
    some = random.sample(range(20_000, 32_000), 200)
    return [port for port in some if _is_free(port)][:n]


def _is_free(port: int) -> bool:
    with socket.socket() as one:
        try:
            one.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
