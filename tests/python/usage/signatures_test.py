"""Services load only what is signed: each test is a process, since a requirement cannot be taken back."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import collage
from collage import relay

PROGRAM = """
import sys
import collage

collage.require_signatures("public.pem")
collage.require_signatures("public.pem")
for load in (lambda: collage.load("signed.clg"), lambda: collage.load("other.clg"), lambda: collage.load(open("signed.clg", "rb"))):
    try:
        load()
        print("loaded")
    except collage.Error as error:
        print(type(error).__name__, str(error).splitlines()[0])
try:
    collage.require_signatures("another.pem")
except collage.InputError as error:
    print(str(error).splitlines()[0])
"""


class Signatures(unittest.TestCase):
    def test_a_process_that_requires_them_loads_nothing_else(self):
        with tempfile.TemporaryDirectory() as made:
            folder = Path(made)
            for private, public in (("private.pem", "public.pem"), ("theirs.pem", "another.pem")):
                subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", folder / private], check=True)
                subprocess.run(
                    ["openssl", "pkey", "-in", folder / private, "-pubout", "-out", folder / public], check=True
                )
            x = relay.var("x", shape=(2,))
            made = collage.compile(relay.Function([x], relay.nn.relu(x)), threads=1, partition_for="native")
            for name in ("signed.clg", "other.clg"):
                made.save(folder / name)
            self.assertEqual(collage.sign(folder / "signed.clg", folder / "private.pem"), folder / "signed.clg.sig")
            run = subprocess.run(
                [sys.executable, "-c", PROGRAM], cwd=folder, capture_output=True, text=True, check=True
            )
        loaded, unsigned, in_memory, another = run.stdout.splitlines()
        self.assertEqual(loaded, "loaded")
        self.assertIn("InputError", unsigned)
        self.assertIn("there is no file other.clg.sig", unsigned)
        self.assertIn("bytes in memory have none", in_memory)
        self.assertIn("signatures by another key are required already", another)


if __name__ == "__main__":
    unittest.main()
