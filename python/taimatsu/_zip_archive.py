"""The zip archives that hold checkpoints, written and read byte for byte as PyTorch's.

Records are stored, not deflated. Each payload starts at a multiple of the alignment: the local header has an extra field "FB" filled with
'Z'. Sizes and checksums follow the payload in a data descriptor and stand in the central directory; a zip64 end record is always there.
"""
import io
import struct
import zlib

_LIMIT = 0xFFFFFFFF
_LOCAL = struct.Struct("<IHHHHHIIIHH")
_CENTRAL = struct.Struct("<IHHHHHHIIIHHHHHII")
_END = struct.Struct("<IHHHHIIH")
_END64 = struct.Struct("<IQHHIIQQQQ")
_LOCATOR = struct.Struct("<IIQI")


class ArchiveWriter:
    """Writes records one after the other to ``file`` (needs only ``write``)."""

    def __init__(self, file, root, alignment=64, checksums=True):
        self.file, self.root, self.alignment, self.checksums = file, root, alignment, checksums
        self.position = 0
        self.entries = []
        self.crc_fold = 0

    def _write(self, data):
        self.file.write(data)
        self.position += len(data)

    def _padding(self, name, size):
        """The extra field that brings the payload to the alignment."""
        start = self.position + _LOCAL.size + len(name) + 4
        zip64 = b""
        if size >= _LIMIT or self.position >= _LIMIT:
            # Room that readers of large files expect: sizes and offset in 64 bits.
            values = [v for v in (size, size) if size >= _LIMIT]
            values += [self.position] if self.position >= _LIMIT else []
            zip64 = struct.pack(f"<HH{len(values)}Q", 1, 8 * len(values), *values)
            start += len(zip64)
        fill = -start % self.alignment
        return zip64 + b"FB" + struct.pack("<H", fill) + b"Z" * fill

    def write_record(self, name, data):
        """One record; ``data`` is bytes or a memoryview of bytes."""
        full = f"{self.root}/{name}".encode()
        size = len(data)
        offset = self.position
        crc = zlib.crc32(data) if self.checksums else 0
        flags = 0x0808 if size else 0x0800
        extra = self._padding(full, size)
        self._write(_LOCAL.pack(0x04034B50, 0, flags, 0, 0, 0, 0, 0, 0, len(full), len(extra)) + full + extra)
        self._write(data)
        if size:
            wide = size >= _LIMIT or offset >= _LIMIT
            self._write(struct.pack("<IIQQ" if wide else "<IIII", 0x08074B50, crc, size, size))
        self.entries.append((full, crc, size, offset, flags))
        self.crc_fold ^= (crc + 0x9E3779B9 + (self.crc_fold << 6) + (self.crc_fold >> 2)) & 0xFFFFFFFFFFFFFFFF
        self.crc_fold &= 0xFFFFFFFFFFFFFFFF

    def finish(self):
        """The records that close every file, and the central directory."""
        self.write_record("version", b"3\n")
        names = 0xCBF29CE484222325
        for byte in b"\0".join(sorted(e[0] for e in self.entries)):
            names = ((names ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
        self.write_record(".data/serialization_id", f"{names:020d}{self.crc_fold:020d}".encode())
        start = self.position
        for name, crc, size, offset, flags in self.entries:
            wide = [v for v in (size, size, offset) if v >= _LIMIT]
            extra = struct.pack(f"<HH{len(wide)}Q", 1, 8 * len(wide), *wide) if wide else b""
            self._write(_CENTRAL.pack(0x02014B50, 0, 0, flags, 0, 0, 0, crc, min(size, _LIMIT), min(size, _LIMIT), len(name), len(extra), 0,
                                      0, 0, 0, min(offset, _LIMIT)) + name + extra)
        length, count, end = self.position - start, len(self.entries), self.position
        self._write(_END64.pack(0x06064B50, _END64.size - 12, 0x031E, 0x002D, 0, 0, count, count, length, start))
        self._write(_LOCATOR.pack(0x07064B50, 0, end, 1))
        self._write(_END.pack(0x06054B50, 0, 0, min(count, 0xFFFF), min(count, 0xFFFF), min(length, _LIMIT), min(start, _LIMIT), 0))


def _bad(text):
    return RuntimeError(f"PytorchStreamReader failed {text}")


class ArchiveReader:
    """Reads records of an archive in a seekable file."""

    def __init__(self, file):
        self.file = file
        self.origin = file.tell()
        file.seek(0, io.SEEK_END)
        self.size = file.tell() - self.origin
        self.entries = {}
        self._read_directory()
        roots = {name.partition("/")[0] for name in self.entries}
        self.root = next(iter(self.entries)).partition("/")[0] if self.entries else ""
        if len(roots) != 1:
            raise _bad("locating file root: file in archive is not in a subdirectory: multiple root folders")
        if not self.has_record("version") and not self.has_record(".data/version"):
            raise RuntimeError('Expected hasRecord("version") to be true, but got false.  (Could this error message be improved?  If so, '
                               "please report an enhancement request to PyTorch.)")
        self._check_version()

    def _at(self, offset, n):
        if offset < 0 or offset + n > self.size:
            raise _bad("reading zip archive: failed finding central directory. The file might be corrupted.")
        self.file.seek(self.origin + offset)
        data = self.file.read(n)
        if len(data) != n:
            raise _bad("reading file: the file is truncated")
        return data

    def _read_directory(self):
        tail = self._at(max(0, self.size - 65557), min(self.size, 65557))
        found = tail.rfind(b"PK\5\6")
        if found < 0 or len(tail) - found < _END.size:
            raise _bad("reading zip archive: failed finding central directory. This can happen when the file is truncated or corrupted.")
        _, _, _, _, count, length, start, _ = _END.unpack_from(tail, found)
        locator = found - _LOCATOR.size
        if locator >= 0 and tail[locator:locator + 4] == b"PK\6\7":
            where = _LOCATOR.unpack_from(tail, locator)[2]
            fields = _END64.unpack(self._at(where, _END64.size))
            if fields[0] == 0x06064B50:
                count, length, start = fields[7], fields[8], fields[9]
        directory = self._at(start, length)
        at = 0
        for _ in range(count):
            if at + _CENTRAL.size > length or directory[at:at + 4] != b"PK\1\2":
                raise _bad("reading zip archive: invalid central directory")
            (_, _, _, _, method, _, _, crc, packed, size, n, extra_n, comment_n, _, _, _, offset) = _CENTRAL.unpack_from(directory, at)
            at += _CENTRAL.size
            name = directory[at:at + n].decode("utf-8", "replace")
            packed, size, offset = self._wide(directory[at + n:at + n + extra_n], packed, size, offset)
            at += n + extra_n + comment_n
            self.entries[name] = (method, packed, size, offset)

    @staticmethod
    def _wide(extra, packed, size, offset):
        """Sizes and offset, taken from the zip64 field where they overflow 32 bits."""
        at = 0
        while at + 4 <= len(extra):
            kind, n = struct.unpack_from("<HH", extra, at)
            if kind == 1:
                values = list(struct.unpack_from(f"<{n // 8}Q", extra, at + 4))
                size = values.pop(0) if size == _LIMIT and values else size
                packed = values.pop(0) if packed == _LIMIT and values else packed
                offset = values.pop(0) if offset == _LIMIT and values else offset
            at += 4 + n
        return packed, size, offset

    def _check_version(self):
        text = self.get_record("version" if self.has_record("version") else ".data/version")
        try:
            version = int(text)
        except ValueError:
            raise RuntimeError(f"Couldn't parse the version {text!r} as Long Long.") from None
        if version < 1:
            raise RuntimeError(f"Attempted to read a PyTorch file with version {version}, but the minimum supported version for reading is "
                               "1. Your PyTorch script module file is too old. Please regenerate it with latest version of PyTorch to "
                               "mitigate this issue.")
        if version > 10:
            raise RuntimeError(f"Attempted to read a PyTorch file with version {version}, but the maximum supported version for reading is "
                               "10. The version of your PyTorch installation may be too old, please upgrade PyTorch to latest version to "
                               "mitigate this issue.")

    def has_record(self, name):
        return f"{self.root}/{name}" in self.entries

    def records(self):
        """Names of all records, without the root folder."""
        return [name[len(self.root) + 1:] for name in self.entries]

    def _entry(self, name):
        try:
            return self.entries[f"{self.root}/{name}"]
        except KeyError:
            raise _bad(f"locating file {name}: file not found in archive") from None

    def record_offset(self, name):
        """Where the payload starts, in bytes from the start of the archive."""
        offset = self._entry(name)[3]
        header = self._at(offset, _LOCAL.size)
        if header[:4] != b"PK\3\4":
            raise _bad(f"reading file {name}: invalid local header")
        fields = _LOCAL.unpack(header)
        return offset + _LOCAL.size + fields[9] + fields[10]

    def record_size(self, name):
        return self._entry(name)[2]

    def is_stored(self, name):
        return self._entry(name)[0] == 0

    def get_record(self, name):
        """The bytes of a record."""
        method, packed, size, _ = self._entry(name)
        data = self._at(self.record_offset(name), packed)
        if method == 0:
            return data
        if method != 8:
            raise _bad(f"reading file {name}: unsupported compression method {method}")
        out = zlib.decompressobj(-15).decompress(data, size + 1)
        if len(out) != size:
            raise _bad(f"reading file {name}: decompression failed")
        return out

    def read_into(self, name, view):
        """Fill ``view``, a writable memoryview of the record's size."""
        if self.is_stored(name):
            start = self.record_offset(name)
            self._at(start + len(view), 0)
            self.file.seek(self.origin + start)
            done = 0
            while done < len(view):
                n = self.file.readinto(view[done:]) if hasattr(self.file, "readinto") else 0
                if not n:
                    chunk = self.file.read(len(view) - done)
                    n = len(chunk)
                    view[done:done + n] = chunk
                if not n:
                    raise _bad(f"reading file {name}: the file is truncated")
                done += n
        else:
            view[:] = self.get_record(name)
