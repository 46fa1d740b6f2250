"""Assembly: the instructions of a model, laid out in the arrays of its tape."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from odejet.model.tape import INFINITE, Column, Op, Tape


@dataclass
class Register:
    static: bool
    tangent: bool
    degree: int = INFINITE


@dataclass
class Instruction:
    op: Op
    out: int
    a: int = -1
    b: int = -1
    c: int = -1
    function: int = -1
    terms: tuple[tuple[int, int], ...] = ()

    def reads(self) -> Iterable[int]:
        yield from (register for register in (self.a, self.b, self.c) if register >= 0)
        for coefficient, source in self.terms:
            yield coefficient
            yield source


@dataclass
class Assembly:
    """Instructions and the registers that they read and write."""

    registers: list[Register] = field(default_factory=list)
    instructions: list[Instruction] = field(default_factory=list)
    numbers: dict[Fraction, int] = field(default_factory=dict)

    def writers(self) -> dict[int, int]:
        """The instruction (by position) that writes each register."""
        return {step.out: i for i, step in enumerate(self.instructions) if step.op != Op.ADVANCE}

    def needed(self, roots: Iterable[int], writers: Mapping[int, int] | None = None) -> set[int]:
        """The instructions (by position) on which the registers `roots` depend; `writers` if they are known already."""
        by_out = self.writers() if writers is None else writers
        found: set[int] = set()
        stack = list(roots)
        while stack:
            i = by_out.get(stack.pop())
            if i is not None and i not in found:
                found.add(i)
                stack.extend(self.instructions[i].reads())
        return found

    def assemble(
        self,
        time: int,
        parameters: list[int],
        states: list[int],
        inputs: list[int],
        outputs: list[int],
        initial: list[int | None],
        switches: list[int],
    ) -> Tape:
        """Drop what nobody reads, number static registers first, and lay the program out in arrays."""
        advances = {i for i, instruction in enumerate(self.instructions) if instruction.op == Op.ADVANCE}
        for_rates = advances | self.needed(r for i in advances for r in self.instructions[i].reads())
        for_rates |= self.needed(switches)
        for_outputs = self.needed(outputs)
        for_initial = self.needed(register for register in initial if register is not None)
        everything = for_rates | for_outputs | for_initial
        static = {i for i in everything if self.registers[self.instructions[i].out].static}
        order = sorted(static) + sorted(for_rates - static) + sorted(for_outputs - for_rates - static)
        used = {r for i in order for r in (self.instructions[i].out, *self.instructions[i].reads())}
        used |= {time, *parameters, *states, *inputs, *outputs, *switches}
        used |= {register for register in initial if register is not None}
        numbering = {old: new for new, old in enumerate(sorted(used, key=lambda r: (not self.registers[r].static, r)))}

        terms: list[tuple[int, int, int]] = []
        rows = [self.encode(self.instructions[i], numbering, terms) for i in order]
        code = np.array(rows, dtype=np.int64).reshape(len(order), len(Column))
        position = {i: place for place, i in enumerate(order)}
        series = code[len(static) :]
        quadratic = np.isin(series[:, Column.OP], (Op.MULTIPLY, Op.SQUARE, Op.DIVIDE, Op.QUADRATURE))

        def renumber(registers: Iterable[int | None]) -> np.ndarray:
            return np.array([-1 if r is None else numbering[r] for r in registers], dtype=np.int64)

        return Tape(
            code=code,
            terms=np.array(terms, dtype=np.int64).reshape(len(terms), 3),
            statics=sum(self.registers[r].static for r in used),
            registers=len(used),
            constants=tuple((numbering[r], value) for value, r in self.numbers.items() if r in used),
            parameters=renumber(parameters),
            states=renumber(states),
            initial=renumber(initial),
            inputs=renumber(inputs),
            time=numbering[time],
            outputs=renumber(outputs),
            split=np.array([len(static), len(static) + len(for_rates - static)], dtype=np.int64),
            observe=np.array(sorted(position[i] for i in for_outputs - static), dtype=np.int64),
            products=int(np.sum(quadratic & (series[:, Column.REACH] > 2))),
            switches=renumber(switches),
        )

    def encode(self, instruction: Instruction, numbering: dict[int, int], terms: list) -> list[int]:
        begin = len(terms)
        for coefficient, source in instruction.terms:
            terms.append((numbering[coefficient], numbering[source], int(self.registers[coefficient].tangent)))
        row = [0] * len(Column)
        row[Column.OP], row[Column.OUT] = instruction.op, numbering[instruction.out]
        for column, source in ((Column.A, instruction.a), (Column.B, instruction.b), (Column.C, instruction.c)):
            row[column] = numbering.get(source, -1)
        row[Column.FUNCTION] = instruction.function
        row[Column.PLAIN] = int(instruction.b >= 0 and not self.registers[instruction.b].tangent)
        shortened = instruction.op in (Op.MULTIPLY, Op.QUADRATURE)
        row[Column.REACH] = self.registers[instruction.a].degree if shortened else INFINITE
        row[Column.BEGIN], row[Column.END] = begin, len(terms)
        return row
