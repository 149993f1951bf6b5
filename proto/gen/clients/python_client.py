# SPDX-License-Identifier: Apache-2.0
"""The package voxeld's methods of a noun's classes: signatures as the face says, types, docstrings
and checks from the schema. They call client/python/voxeld/exchange.py."""

from __future__ import annotations

import re
from typing import Any

from model import Method, Schema, snake
from clients.python_names import HEAD, HEADER, Own, Parameter, plural
from clients.python_requests import PythonRequests
from clients.python_text import WIDTH, class_of, docstring, own_comment, sentence

COMMON = (
    ("timeout", "float | None", "None"),
    ("request_id", "str | None", "None"),
    ("sequence", "int", "0"),
)
OF_POINTS = ("Points", "cloud_of", "cloud_with", "clouds_of", "pose_of")


class PythonClient(PythonRequests):
    """Writes one noun's three files."""

    def takes_arrays(self, face: dict[str, Any], method: Method) -> bool:
        """Whether its request or reply has arrays, which go beside the messages."""
        is_sent = "parts" in face or any(p.is_cloud for p in self.parameters(face))
        fields = [*method.request.fields, *method.response.fields]
        return is_sent or any(f.is_tensor or f.is_rows for f in fields)

    def call_lines(
        self, face: dict[str, Any], method: Method, parameters: list[Parameter], of_noun: bool
    ) -> list[str]:
        client = "self._client" if of_noun else "self"
        if self.takes_arrays(face, method):
            return self.send_lines(face, method, parameters, client)
        changes = method.mutates or face.get("changes", False)
        verb, last = ("change", ", sequence") if changes else ("ask", "")
        record = self.records.get(face.get("as", method.response.name), {})
        replayed = "returns" not in face and record.get("header") == "replayed"
        reply = "reply, replayed" if replayed else "reply"
        verb = face.get("asks", "changed" if replayed else verb)
        arguments = f'{client}, "{method.name}", message, timeout, request_id{last}'
        if face.get("returns") == "None":
            return [f"exchange.{verb}({arguments})"]
        call = [f"{reply} = exchange.{verb}({arguments})"]
        if len(call[0]) + 4 > WIDTH:
            call = [f"{reply} = exchange.{verb}(", f"    {arguments}", ")"]
        return [*call, f"return {self.result(face, method, reply)}"]

    def send_lines(
        self, face: dict[str, Any], method: Method, parameters: list[Parameter], client: str
    ) -> list[str]:
        """The call of a method with arrays, and its result."""
        sends_parts = "parts" in face or "either" in face
        sends_parts |= any(p.is_cloud or p.field.is_tensor or p.field.is_rows for p in parameters)
        number = "sequence" if method.mutates else "None"
        arguments = (
            f'{client}, "{method.name}", message, {"parts" if sends_parts else "[]"}, '
            f"timeout, request_id, {number}"
        )
        of_header = [f"{p.name}={p.name}" for p in parameters if p.owner == HEADER]
        call = [f"reply = exchange.send({', '.join([arguments, *of_header])})"]
        if len(call[0]) + 4 > WIDTH:
            more = [f"    {', '.join(of_header)}"] if of_header else []
            comma = "," if more else ""
            call = ["reply = exchange.send(", f"    {arguments}{comma}", *more, ")"]
        return [*call, "with reply:", f"    return {self.sent_result(face, method, parameters)}"]

    def sent_result(
        self, face: dict[str, Any], method: Method, parameters: list[Parameter]
    ) -> str:
        if "reads" in face:
            return str(face["reads"])
        record = self.records[method.response.name]
        reads = any(f.is_tensor or f.is_rows for f, _ in self.members(method.response))
        rows = self.n_rows(face, method, parameters)
        taken = f"reply, message, {rows}" if reads else "reply.message"
        if record.get("header") == "replayed":
            taken += ", reply.replayed"
        return f"{snake(record['class'])}_of({taken})"

    def n_rows(self, face: dict[str, Any], method: Method, parameters: list[Parameter]) -> str:
        """How many rows a reply has whose arrays have one for each of the request's."""
        tensors = [p for p in parameters if p.field.is_tensor]
        first = next((f for f in method.response.fields if f.is_tensor), None)
        if "n" in face:
            return face["n"] if face["n"].isdigit() else f"len({face['n']}_array)"
        if len(tensors) > 1:  # of which one has n rows
            of_n = [p.name for p in tensors if p.field.shape[:1] == ["n"]]
            return f"len({of_n[0]}_array)" if of_n else "0"
        if tensors:
            return "len(array)"
        sends = any(f.is_tensor for f in method.request.fields)
        if not sends and first is not None and first.shape[:1] == ["n"]:
            return f'reply.n_rows("{first.name}")'
        return "0"

    def result(self, face: dict[str, Any], method: Method, reply: str) -> str:
        returns = face.get("returns")
        if returns is None:
            record = self.records[face.get("as", method.response.name)]
            return f"{snake(record['class'])}_of({reply})"
        taken = f"reply.{face['take']}"
        if returns in ("bool", "str"):
            return f"{returns}({taken})"
        if not method.response.field(face["take"]).is_message:
            return f"tuple({taken})"
        message = method.response.field(face["take"]).message_of
        read = f"{snake(self.records[message.name]['class'])}_of"
        if returns.startswith("tuple["):
            return f"tuple({read}(m) for m in {taken})"
        if face.get("needs"):
            taken = f'exchange.need(reply, "{face["take"]}")'
        if returns == self.owner:
            return f"{returns}(self, {read}({taken}))"
        return f"{read}({taken})"

    def method_doc(self, face: dict[str, Any], method: Method) -> str:
        rows = []
        for a in self.arguments(face):
            if a.name == "name":
                continue
            text = a.doc if isinstance(a, Own) else self.argument_doc(a)
            if text:
                rows.append((a.name, text))
        errors = [f"{class_of(code)} ({what})" for code, what in method.errors]
        raises = f"Raises {', '.join(errors)}." if errors else ""
        raises = face.get("raises", raises)
        return docstring([" ".join(face["doc"].split())], rows, raises, "    ")

    def argument_doc(self, p: Parameter) -> str:
        text = self.of_field("docs", p.field)
        return text or sentence(p.field, own_comment(self.schema, p.field))

    def emit_method(self, face: dict[str, Any]) -> str:
        owner, name = face["name"].split(".")
        method = self.schema.method(face["method"])
        parameters = self.parameters(face)
        of_noun = owner != "Client"
        words = [f"self: {self.face.get('self', 'exchange.Noun') if of_noun else 'Calls'}"]
        changes = method.mutates or face.get("changes", False)
        common = [c for c in COMMON if changes or c[0] != "sequence"]
        is_keyword = False
        for a in self.arguments(face):
            if a.is_keyword and not is_keyword:
                words.append("*")
                is_keyword = True
            default = f" = {a.default}" if a.default else ""
            kind = a.type if isinstance(a, Own) else self.argument_type(a)
            words.append(f"{a.name}: {kind}{default}")
        words += ([] if is_keyword else ["*"]) + [f"{n}: {t} = {d}" for n, t, d in common]
        record = self.records.get(face.get("as", method.response.name), {})
        returns = face.get("returns") or record["class"]
        head = f"def {name}({', '.join(words)}) -> {returns}:"
        if len(head) > WIDTH:
            lines = [f"def {name}(", *(f"    {w}," for w in words), f") -> {returns}:"]
        else:
            lines = [head]
        body = [
            *face.get("before", []),
            *self.checks(parameters),
            *self.request_lines(face, method, parameters, of_noun),
            *self.call_lines(face, method, parameters, of_noun),
        ]
        return "\n".join(
            [*lines, self.method_doc(face, method), *(f"    {b}" for b in body)]
        )

    def methods_text(self, owner: str) -> str:
        faces = [f for f in self.face["methods"] if f["name"].startswith(f"{owner}.")]
        blocks = [self.emit_method(face) for face in faces]
        text = "\n\n\n".join(blocks) + "\n"
        what = f"Methods of {owner}" + (f" on {plural(self.noun)}" if owner == "Client" else "")
        head = HEAD.format(schema=self.source, noun=self.noun, doc=f"{what}, a function each.")
        return f"{head}\n{self.method_imports(owner, text)}\n\n{text}"

    def method_imports(self, owner: str, text: str) -> str:
        """What a file of methods uses."""
        code = re.sub(r'""".*?"""', "", text, flags=re.DOTALL)

        def uses(name: str) -> bool:
            return re.search(rf"(?<![\w.]){name}\b", code) is not None

        abstract = [t for t in ("Iterable", "Mapping", "Sequence") if uses(t)]
        blocks = [f"from collections.abc import {', '.join(abstract)}\n" if abstract else ""]
        numpy = "import numpy as np\n" if "np." in text else ""
        numpy += "import numpy.typing as npt\n" if "npt." in text else ""
        modules = ", ".join(sorted(set(re.findall(r"\b(\w+_pb2)\.", code))))
        blocks += [numpy, f"from voxeld.v1 import {modules}\n"]
        ours = ["from .. import exchange\n"]
        if owner == "Client":
            ours.append("from ..calls import Calls\n")
            if re.search(rf"\b{self.owner}\(self", text):
                ours.append(f"from ..{plural(self.noun)} import {self.owner}\n")
        if uses("Pose"):
            ours.append("from ..cloud import Pose\n")
        of_points = [name for name in OF_POINTS if uses(name)]
        if of_points:
            ours.append(f"from ..points import {', '.join(of_points)}\n")
        for line in self.face.get("method_imports", []):
            module, _, names = line.partition(" import ")
            used = [name for name in names.split(", ") if uses(name)]
            ours += [f"{module} import {', '.join(used)}\n"] if used else []
        blocks.append("".join(sorted(ours)) + self.records_import(code))
        return "\n".join(block for block in blocks if block)

    def records_import(self, code: str) -> str:
        """What it uses of the file of records."""
        classes = [r["class"] for r in self.records.values()]
        constants = [self.choices_name(self.schema.enums[n]) for n in self.face["choices"]]
        known = {f"{snake(c)}_{w}" for c in classes for w in ("of", "message")}
        functions = set(re.findall(r"(?<![\w.])(\w+_(?:of|message))\b", code)) & known
        used = [c for c in classes if re.search(rf"\b{c}\b", code)]
        used += [c for c in constants if c in code]
        ordered = sorted([*used, *functions], key=lambda n: (not n.isupper(), n.islower(), n))
        if not ordered:
            return ""
        return "".join(
            [f"from .{self.noun}_records import (\n", *(f"    {n},\n" for n in ordered), ")\n"]
        )


def outputs(schema: Schema, noun: str, face: dict[str, Any]) -> dict[str, str]:
    client = PythonClient(schema, noun, face)
    folder = "client/python/voxeld/generated"
    made = {f"{folder}/{noun}_records.py": client.records_text()}
    for owner, module in (("Client", "client"), (client.owner, "methods")):
        if any(f["name"].startswith(f"{owner}.") for f in face["python"]["methods"]):
            made[f"{folder}/{noun}_{module}.py"] = client.methods_text(owner)
    return made
