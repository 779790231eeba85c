"""torch.save, torch.load and safetensors: round trips, PyTorch reads what is written, bad files are refused."""
import collections
import json
import os
import pickle
import struct
import zipfile

import pytest
import taimatsu as torch
from taimatsu import nn
from taimatsu.safetensors import load_file, save_file


def objects():
    base = torch.arange(6.0).reshape(2, 3)
    return {"plain": base, "view": base.t(), "same": base[1], "half": torch.ones(2, dtype=torch.bfloat16), "empty": torch.empty(0, 3),
            "scalar": torch.tensor(5), "bool": torch.tensor([True, False]), "complex": torch.tensor([1 + 2j]),
            "parameter": nn.Parameter(torch.ones(1)), "list": [1, 2.5, "text", None, True, (3, 4)], "size": torch.Size([1, 2]),
            "dtype": torch.float16, "device": torch.device("cpu"), "ordered": collections.OrderedDict(a=1), "bytes": b"x", "set": {1, 2}}


def check(loaded):
    for key, value in objects().items():
        if isinstance(value, torch.Tensor):
            assert torch.equal(loaded[key], value)
            assert loaded[key].dtype == value.dtype
            assert loaded[key].stride() == value.stride()
        else:
            assert loaded[key] == value
            assert type(loaded[key]) is type(value)
    assert loaded["view"].data_ptr() == loaded["plain"].data_ptr()     # shared memory stays shared
    assert isinstance(loaded["parameter"], nn.Parameter)


@pytest.mark.parametrize("options", [{}, {"weights_only": False}, {"mmap": True}])
def test_round_trip(tmp_path, options):
    path = tmp_path / "x.pt"
    torch.save(objects(), path)
    check(torch.load(path, **options))
    with zipfile.ZipFile(path) as archive:
        names = [n.partition("/")[2] for n in archive.namelist()]
        assert names[:3] == ["data.pkl", ".format_version", ".storage_alignment"]
        assert {"byteorder", "version", ".data/serialization_id", "data/0"} <= set(names)
        assert all(i.header_offset >= 0 and i.compress_type == zipfile.ZIP_STORED for i in archive.infolist())


def test_round_trip_of_the_old_format(tmp_path):
    torch.save(objects(), tmp_path / "x.pt", _use_new_zipfile_serialization=False)
    check(torch.load(tmp_path / "x.pt"))


def test_buffers_and_whole_modules(tmp_path):
    import io
    model = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    buffer = io.BytesIO()
    torch.save(model, buffer)
    buffer.seek(0)
    with pytest.raises(pickle.UnpicklingError, match="Weights only load failed"):
        torch.load(buffer)
    buffer.seek(0)
    twin = torch.load(buffer, weights_only=False)
    assert torch.equal(twin[0].weight, model[0].weight)
    twin.load_state_dict(model.state_dict())


def test_pytorch_reads_what_is_written(run_torch, tmp_path):
    path = str(tmp_path / "x.pt")
    torch.save(objects(), path)
    out = run_torch("-c", "import torch, sys; d = torch.load(sys.argv[1]); print(d['view'].tolist(), d['list'], d['half'].dtype, "
                    "d['view'].data_ptr() == d['plain'].data_ptr(), d['parameter'].requires_grad)", path)
    assert out == "[[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]] [1, 2.5, 'text', None, True, (3, 4)] torch.bfloat16 True True\n"


def test_what_pytorch_writes_is_read(run_torch, tmp_path):
    path = str(tmp_path / "x.pt")
    run_torch("-c", "import torch, sys; m = torch.nn.Linear(2, 2); o = torch.optim.AdamW(m.parameters()); m(torch.ones(1, 2)).sum().backward(); "
              "o.step(); torch.save({'m': m.state_dict(), 'o': o.state_dict(), 'w': torch.arange(3.)}, sys.argv[1])", path)
    state = torch.load(path)
    assert state["w"].tolist() == [0, 1, 2]
    model = nn.Linear(2, 2)
    model.load_state_dict(state["m"])
    torch.optim.AdamW(model.parameters()).load_state_dict(state["o"])


class Evil:
    def __reduce__(self):
        return os.system, ("touch /tmp/taimatsu-was-here",)


def test_code_in_files_does_not_run(tmp_path):
    torch.save({"a": Evil()}, tmp_path / "x.pt")
    with pytest.raises(pickle.UnpicklingError, match=r"unsupported GLOBAL posix\.system whose module posix is blocked"):
        torch.load(tmp_path / "x.pt")
    assert not os.path.exists("/tmp/taimatsu-was-here")


class Settings:
    def __init__(self):
        self.rate = 0.5


def test_safe_globals(tmp_path):
    torch.save(Settings(), tmp_path / "x.pt")
    with pytest.raises(pickle.UnpicklingError, match="add_safe_globals"):
        torch.load(tmp_path / "x.pt")
    with torch.serialization.safe_globals([Settings]):
        assert torch.load(tmp_path / "x.pt").rate == 0.5
    with pytest.raises(pickle.UnpicklingError):
        torch.load(tmp_path / "x.pt")


@pytest.mark.parametrize("cut", [1, 10, 100, 400, 1000])
def test_broken_files_raise(tmp_path, cut):
    path = tmp_path / "x.pt"
    torch.save(objects(), path)
    whole = path.read_bytes()
    path.write_bytes(whole[:-cut])
    with pytest.raises((RuntimeError, EOFError, pickle.UnpicklingError)):
        torch.load(path)
    assert isinstance(torch.ones(1).sum().item(), float)


def test_map_location(tmp_path):
    torch.save(torch.ones(2), tmp_path / "x.pt")
    for where in ("cpu", torch.device("cpu"), {"cpu": "cpu"}, lambda storage, place: storage):
        assert torch.load(tmp_path / "x.pt", map_location=where).tolist() == [1, 1]


def test_safetensors_round_trip(tmp_path):
    path = str(tmp_path / "x.safetensors")
    tensors = {"b": torch.arange(4, dtype=torch.int64), "a": torch.ones(2, 3, dtype=torch.bfloat16), "e": torch.empty(0)}
    save_file(tensors, path, metadata={"format": "pt"})
    for loaded in (load_file(path), torch.load(path)):
        assert set(loaded) == set(tensors)
        assert all(torch.equal(loaded[k], v) and loaded[k].dtype == v.dtype for k, v in tensors.items())
    raw = open(path, "rb").read()
    size = struct.unpack("<Q", raw[:8])[0]
    assert (8 + size) % 8 == 0
    assert json.loads(raw[8:8 + size])["__metadata__"] == {"format": "pt"}


@pytest.mark.parametrize("header", [
    b"", b"{", b"[]", b'{"a":1}', b'{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}}', b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,400]}}',
    b'{"a":{"dtype":"XX","shape":[1],"data_offsets":[0,4]}}', b'{"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}}',
    b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}', b'{"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,8]}}'])
def test_bad_safetensors_are_refused(tmp_path, header):
    path = tmp_path / "x.safetensors"
    path.write_bytes(struct.pack("<Q", len(header)) + header + bytes(8))
    with pytest.raises(Exception) as error:     # noqa: PT011
        load_file(str(path))
    assert "afetensor" in type(error.value).__name__ + str(error.value)
    path.write_bytes(struct.pack("<Q", 1 << 60) + header)
    with pytest.raises(Exception):              # noqa: B017, PT011
        load_file(str(path))
