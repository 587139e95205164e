"""The one safe door for pickles: nothing else unpickles, and nothing here runs what a file asks for.

A file passes three walls. `containers` and `scan` read it as data, in this process, and refuse whatever is not a plain
container of numbers and words. `child` then reads it in a separate process without network, with little memory and time
(`fence`), through loaders that know a short list of names (`stand_ins`, or torch with `weights_only=True`). What comes
back is JSON and safetensors (`tree`), checked again here. `load` is the door itself.
"""
