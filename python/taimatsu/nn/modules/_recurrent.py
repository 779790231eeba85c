"""Recurrent networks written with operators: what runs where the extension has no fused lstm, gru or rnn operator.

A cell maps (input part, state) to a new state; the input's products with W_ih are made for all steps at once. States are tuples whose
first entry is the step's output.
"""
from ... import _core as core

_nn = core._nn


def _lstm_step(gates, state, weights):
    h, c = state
    gates = gates + _nn.linear(h, weights["hh"], weights.get("bhh"))
    i, f, g, o = gates.chunk(4, 1)
    c = core.sigmoid(f) * c + core.sigmoid(i) * core.tanh(g)
    h = core.sigmoid(o) * core.tanh(c)
    if "hr" in weights:
        h = core.matmul(h, weights["hr"].t())
    return h, c


def _gru_step(gates, state, weights):
    (h,) = state
    hidden = _nn.linear(h, weights["hh"], weights.get("bhh"))
    i_r, i_z, i_n = gates.chunk(3, 1)
    h_r, h_z, h_n = hidden.chunk(3, 1)
    r, z = core.sigmoid(i_r + h_r), core.sigmoid(i_z + h_z)
    n = core.tanh(i_n + r * h_n)
    return ((h - n) * z + n,)


def _tanh_step(gates, state, weights):
    return (core.tanh(gates + _nn.linear(state[0], weights["hh"], weights.get("bhh"))),)


def _relu_step(gates, state, weights):
    return (core.relu(gates + _nn.linear(state[0], weights["hh"], weights.get("bhh"))),)


STEPS = {"LSTM": _lstm_step, "GRU": _gru_step, "RNN_TANH": _tanh_step, "RNN_RELU": _relu_step}


def _layer(step, x, state, weights, reverse):
    """One direction of one layer over (length, batch, features)."""
    gates = _nn.linear(x, weights["ih"], weights.get("bih")).unbind(0)
    outputs = []
    for g in reversed(gates) if reverse else gates:
        state = step(g, state, weights)
        outputs.append(state[0])
    if reverse:
        outputs.reverse()
    return core.stack(outputs, 0), state


def _packed_layer(step, x, batch_sizes, state, weights, reverse):
    """One direction of one layer over packed rows: step t has the first batch_sizes[t] sequences."""
    sizes = batch_sizes.tolist()
    gates = _nn.linear(x, weights["ih"], weights.get("bih")).split(sizes)
    outputs = [None] * len(sizes)
    order = range(len(sizes) - 1, -1, -1) if reverse else range(len(sizes))
    initial, finished = state, []
    if reverse:
        state = tuple(s[:sizes[-1]] for s in initial)
    for t in order:
        n, have = sizes[t], state[0].shape[0]
        if n < have:            # these sequences have ended
            finished.append(tuple(s[n:] for s in state))
            state = tuple(s[:n] for s in state)
        elif n > have:          # these sequences end here, seen from behind
            state = tuple(core.cat([s, i[have:n]]) for s, i in zip(state, initial))
        state = step(gates[t], state, weights)
        outputs[t] = state[0]
    finished.append(state)
    final = tuple(core.cat([part[k] for part in reversed(finished)]) for k in range(len(state)))
    return core.cat(outputs), final


def _named(parameters, biases, projected):
    names = ["ih", "hh"] + (["bih", "bhh"] if biases else []) + (["hr"] if projected else [])
    return [dict(zip(names, parameters[i:i + len(names)])) for i in range(0, len(parameters), len(names))]


def run(mode, x, states, parameters, biases, num_layers, dropout, training, bidirectional, batch_sizes=None, batch_first=False):
    """(output, final states) of a whole network. ``states`` are tensors (layers * directions, batch, features): h, and c for an LSTM."""
    step, directions = STEPS[mode], 2 if bidirectional else 1
    weights = _named(parameters, biases, len(parameters) == num_layers * directions * (5 if biases else 3))
    if batch_first and batch_sizes is None:
        x = x.transpose(0, 1)
    finals = []
    for layer in range(num_layers):
        outputs = []
        for direction in range(directions):
            k = layer * directions + direction
            state = tuple(s[k] for s in states)
            if batch_sizes is None:
                out, state = _layer(step, x, state, weights[k], direction == 1)
            else:
                out, state = _packed_layer(step, x, batch_sizes, state, weights[k], direction == 1)
            outputs.append(out)
            finals.append(state)
        x = outputs[0] if directions == 1 else core.cat(outputs, outputs[0].dim() - 1)
        if dropout > 0 and training and layer < num_layers - 1:
            x = core.dropout(x, dropout, True)
    if batch_first and batch_sizes is None:
        x = x.transpose(0, 1)
    return (x, *(core.stack([f[i] for f in finals], 0) for i in range(len(states))))


def cell(mode, x, state, w_ih, w_hh, b_ih, b_hh):
    """One step; the new state as a tuple."""
    weights = {"hh": w_hh}
    if b_hh is not None:
        weights["bhh"] = b_hh
    return STEPS[mode](_nn.linear(x, w_ih, b_ih), state, weights)
