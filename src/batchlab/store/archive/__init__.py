"""Import and export of the layout in which the paper's measurements were published.

::

    <base>/<model>/<optimizer>/<batch_size>/study.json
    <base>/<model>/<optimizer>/<batch_size>/<trial_id>/metadata.json
    <base>/<model>/<optimizer>/<batch_size>/<trial_id>/measurements.csv
"""
