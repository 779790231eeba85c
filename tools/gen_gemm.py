#!/usr/bin/env python3
"""Writes the x86-64 micro-kernels of the matrix product as assembler: `gen_gemm.py avx2|avx512 OUT.S`.

Why assembler: compilers disagree about the registers of such loops and lose a factor of 3 to 5 when they guess wrong. Why a generator:
AVX2 and AVX-512 kernels for float and double are one text with the register width as a parameter.

A kernel computes `rows` x (`vectors` * lanes) elements of C. In registers:

    vector 0 .. vectors-1               one row of B
    the next two                        one element of A in every lane, used by turns
    the last rows * vectors             the tile of C
    rax rdx rsi r9                      rows 0, 4, 8, 12 of A; others by index: r8 = stride, r10 = 3 * stride
    rcx                                 from one k step to the next in A
    r11, rbx                            B, and from one k step to the next in B
    rdi                                 struct tmi_ukr_args (gemm_kernels.h)

Strided kernels take any strides of A and B; dense ones want packed panels, whose strides are constants, and unroll four k steps.
"""
import sys

ISA = {"avx2": dict(vector="ymm", bytes=32, registers=16, rows=6), "avx512": dict(vector="zmm", bytes=64, registers=32, rows=14)}
TYPE = {"f32": dict(suffix="s", size=4), "f64": dict(suffix="d", size=8)}
K, A, A_RS, A_CS, B, B_RS, C, C_RS, ALPHA, ACCUMULATE = range(0, 80, 8)
A_BASES = ["rax", "rdx", "rsi", "r9"]


class Kernel:
    def __init__(self, isa, dtype, rows, vectors, dense):
        self.__dict__.update(ISA[isa], **TYPE[dtype])
        self.max_rows = ISA[isa]["rows"]
        self.rows, self.vectors, self.dense = rows, vectors, dense
        self.name = f"tmk_gemm_{dtype}_{isa}_{rows}x{vectors}{'_dense' if dense else ''}"
        self.lines = []

    def put(self, *lines):
        self.lines += lines

    def reg(self, i):
        return f"%{self.vector}{i}"

    def acc(self, r, v):
        return self.reg(self.registers - self.rows * self.vectors + r * self.vectors + v)

    def a_address(self, r, step):
        if self.dense:
            return f"{(step * self.rows + r) * self.size}(%rax)"
        base = A_BASES[r // 4]
        return [f"(%{base})", f"(%{base},%r8)", f"(%{base},%r8,2)", f"(%{base},%r10)"][r % 4]

    def load_strides(self):
        self.put(f"    movq {A}(%rdi), %rax", f"    movq {B}(%rdi), %r11")
        if self.dense:
            return
        self.put(f"    movq {A_RS}(%rdi), %r8", f"    movq {A_CS}(%rdi), %rcx", f"    movq {B_RS}(%rdi), %rbx",
                 "    leaq (%r8,%r8,2), %r10")
        for i in range(1, (self.rows + 3) // 4):
            self.put(f"    leaq (%{A_BASES[i - 1]},%r8,4), %{A_BASES[i]}")

    def clear(self):
        for r in range(self.rows):
            for v in range(self.vectors):
                name = self.acc(r, v)
                if self.vector == "zmm":
                    self.put(f"    vpxord {name}, {name}, {name}")
                else:
                    self.put(f"    vxorps {name}, {name}, {name}")

    def step(self, k):
        """One k step; `k` counts inside an unrolled group of a dense kernel."""
        offset = k * self.vectors * self.bytes if self.dense else 0
        for v in range(self.vectors):
            self.put(f"    vmovup{self.suffix} {offset + v * self.bytes}(%r11), {self.reg(v)}")
        for r in range(self.rows):
            a = self.reg(self.vectors + r % 2)
            self.put(f"    vbroadcasts{self.suffix} {self.a_address(r, k)}, {a}")
            for v in range(self.vectors):
                self.put(f"    vfmadd231p{self.suffix} {self.reg(v)}, {a}, {self.acc(r, v)}")

    def advance(self, steps):
        if self.dense:
            self.put(f"    addq ${steps * self.rows * self.size}, %rax", f"    addq ${steps * self.vectors * self.bytes}, %r11")
            return
        self.put("    addq %rbx, %r11")
        for i in range((self.rows + 3) // 4):
            self.put(f"    addq %rcx, %{A_BASES[i]}")

    def prefetch_c(self):
        self.put(f"    movq {C}(%rdi), %r8", f"    movq {C_RS}(%rdi), %r10")
        for _ in range(self.rows):
            for line in range(0, self.vectors * self.bytes, 64):
                self.put(f"    prefetcht0 {line}(%r8)")
            self.put(f"    prefetcht0 {self.vectors * self.bytes - 1}(%r8)", "    addq %r10, %r8")

    def loop(self):
        counter = "%r9" if self.dense else "%rbp"
        self.put(f"    movq {K}(%rdi), {counter}")
        if self.dense:
            self.put(f"    subq $4, {counter}", "    jl 2f", "    .p2align 4", "1:")
            for k in range(4):
                self.step(k)
            self.advance(4)
            self.put(f"    subq $4, {counter}", "    jge 1b", "2:", f"    addq $4, {counter}", "    jz 4f")
        else:
            self.put(f"    testq {counter}, {counter}", "    jz 4f", "    .p2align 4")
        self.put("3:")
        self.step(0)
        self.advance(1)
        self.put(f"    subq $1, {counter}", "    jnz 3b", "4:")

    def store(self):
        self.put(f"    movq {C}(%rdi), %rax", f"    movq {C_RS}(%rdi), %rcx",
                 f"    vbroadcasts{self.suffix} {ALPHA}(%rdi), {self.reg(0)}", f"    cmpq $0, {ACCUMULATE}(%rdi)", "    jne 5f")
        for accumulate in (False, True):
            if accumulate:
                self.put("5:")
            for r in range(self.rows):
                for v in range(self.vectors):
                    acc, place = self.acc(r, v), f"{v * self.bytes}(%rax)"
                    self.put(f"    vmulp{self.suffix} {self.reg(0)}, {acc}, {acc}")
                    if accumulate:
                        self.put(f"    vaddp{self.suffix} {place}, {acc}, {acc}")
                    self.put(f"    vmovup{self.suffix} {acc}, {place}")
                if r + 1 < self.rows:
                    self.put("    addq %rcx, %rax")
            if not accumulate:
                self.put("    jmp 6f")
        self.put("6:")

    def text(self):
        saved = [] if self.dense else ["rbx", "rbp"]
        self.put("", "    .p2align 5", f"    .globl {self.name}", f"    .hidden {self.name}", f"    .type {self.name}, @function", f"{self.name}:")
        self.put(*[f"    pushq %{r}" for r in saved])
        self.prefetch_c()
        self.load_strides()
        self.clear()
        self.loop()
        self.store()
        self.put("    vzeroupper", *[f"    popq %{r}" for r in reversed(saved)], "    ret", f"    .size {self.name}, . - {self.name}")
        return "\n".join(self.lines)


def variants(isa):
    """Per kind the kernels by number of rows. Four vectors serve products of few rows; dense ones serve the two panel heights of large ones."""
    rows = ISA[isa]["rows"]
    wide = 2 if isa == "avx2" else 6
    return [[(r, 1, False) for r in range(1, rows + 1)], [(r, 2, False) for r in range(1, rows + 1)],
            [(r, 4, False) if r <= wide else None for r in range(1, rows + 1)],
            [(r, 2, True) if r >= rows - 1 else None for r in range(1, rows + 1)]]


def main():
    isa, out = sys.argv[1:]
    text = [f"# Written by tools/gen_gemm.py {isa}; see there.", "    .text"]
    for dtype in TYPE:
        for kind in variants(isa):
            text += [Kernel(isa, dtype, *v).text() for v in kind if v]
    text += ["", '    .section .data.rel.ro,"aw",@progbits', "    .p2align 5"]
    for dtype in TYPE:
        table = f"tmk_gemm_{dtype}_{isa}"
        text += [f"    .globl {table}", f"    .hidden {table}", f"    .type {table}, @object", f"{table}:"]
        for kind in variants(isa):
            text += [f"    .quad {Kernel(isa, dtype, *v).name if v else 0}" for v in kind]
        text += [f"    .size {table}, . - {table}"]
    text += ["", '    .section .note.GNU-stack,"",@progbits', ""]
    with open(out, "w") as f:
        f.write("\n".join(text))


main()
