# The demo in a container, with the versions that the project is tested with:
#
#   docker build --tag tacit .
#   docker run --rm --volume "$PWD":/work --user "$(id -u):$(id -g)" tacit
#
# writes demo/report.html into the current folder. Any other command works the same:
#
#   docker run --rm --volume "$PWD":/work --user "$(id -u):$(id -g)" tacit plan exp.toml
#
# Nothing is fetched when it runs: --network none may be added.
#
# The services of a federation run from it too: deploy/compose.yaml. What they keep is in
# /var/tacit, and in /var/anchor by what they notice that it was put back from a backup.
#
# A tag can be moved to another image. An operator names the one it has checked:
#
#   docker build --build-arg PYTHON_IMAGE=python:3.12-slim@sha256:... --tag tacit .
ARG PYTHON_IMAGE=python:3.12-slim
FROM ${PYTHON_IMAGE}

WORKDIR /source
COPY constraints.txt pyproject.toml README.md LICENSE ./
COPY src src
RUN pip install --no-cache-dir --constraint constraints.txt setuptools \
    && pip install --no-cache-dir --constraint constraints.txt --no-build-isolation '.[tables,serve]' \
    && mkdir /var/tacit /var/anchor && chown nobody /var/tacit /var/anchor \
    && chmod 700 /var/tacit /var/anchor

# Whoever runs it need not exist in here, so what is kept between two steps of one run
# goes where everybody may write: parsed tables, compiled kernels, fonts of plots.
ENV TACIT_CACHE=/tmp/tacit \
    NUMBA_CACHE_DIR=/tmp/numba \
    MPLCONFIGDIR=/tmp/matplotlib

WORKDIR /work
USER nobody
ENTRYPOINT ["tacit"]
CMD ["demo", "--out", "demo"]
