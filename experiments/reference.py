"""Reference packages on the rows of the papers: ``python -m experiments.reference``.

    pip install skfeature-chappers==1.2.1 lassonet==0.0.21 stg==0.1.2
    python -m experiments.reference --method=fisher_score --datasets=madelon,coil20
    python -m experiments.reference

Install the packages into an environment of their own: they pin old versions of others. Each method
is called as its ``command`` in ``reproduction/reference.csv`` says, on the training rows of the
paper's split, and its columns are judged by the paper's support vector machine, so that only the
code that selects differs. Rows that are in the table already are left out.
"""

from experiments.start import start

if __name__ == "__main__":
    start("papers.reference")
