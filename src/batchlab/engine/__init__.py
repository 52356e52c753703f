"""The engine: trains K trials of one network at once.

One trial is one row. All trials of a pack have the same network, batch size and step; each has its own numbers::

                       parameters of one trial (P)
                 conv.weight  conv.bias  dense.weight  dense.bias
    trial  3  [  . . . . . .  . .        . . . . . .   . .       ]   values     [K, P]   what the trials know
    trial  7  [  . . . . . .  . .        . . . . . .   . .       ]
    trial 12  [  . . . . . .  . .        . . . . . .   . .       ]
                                                                     gradients  [K, P]   filled by each step
                                                                     state      [K, ...] the optimizer's, by name
                                                                     buffers    [K, ...] the network's, by name

Who owns which memory:

- `parameters.ParameterMatrix` owns values and gradients. Rows begin at multiples of 64 bytes, so that a trial's bits do
  not depend on its row. An `optim.layout.Layout` names the segments of a row; kernels lie channels-last.
- The network owns none: with one trial, the parameters of the module and their `.grad` are views of the row, so that
  hooks, second derivatives and other people's modules work as everywhere in PyTorch (`forward.Single`); gradients of
  millions of numbers stay where autograd makes them, and the optimizer takes them from there. With several,
  leaves [K, ...] are views of the matrix, for a hand-written form (`forward.Packed`) or for `torch.func`
  (`forward.Vectorised`). Hand-written layers write the gradient of a weight straight into the matrix.
- The optimizer changes the values in place; `updating.Updating` owns its state, as `observing.Observing` owns that of
  observers. A `program.TorchProgram` holds all of them, and copies what they own out in `state()`.
- Examples belong to a `source.Source`, which all programs of a process share. Of tensors a batch is an index gather;
  the Datasets of a user are read by processes of their own (`own.loaded`).

A step, in `program`: ask for the batch, differentiate its microbatches, update. Batch sizes and metaparameters of each
update are the `timetable`'s. An `observer.Observer` sees each of the gradients before they are added up. What a batch
is and how a loss comes of it is the `trainable.Trainable`'s: `problem.Problem` has inputs and labels. Where several
workers train one trial, `gang.sharing` says what is whose. `loop` trains to each evaluated step.
"""
