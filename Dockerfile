# Image of Windrow's coordinator; its wheel also contains the client and the Spark jobs.
#
#     docker build --tag windrow:0.1.0 .

# For repeatable builds, give the tag's digest, which its registry knows:
# --build-arg PYTHON=python:3.13-slim-trixie@sha256:…
ARG PYTHON=python:3.13-slim-trixie

FROM ${PYTHON} AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /source
# Only the sources of the wheel; .dockerignore keeps everything else out of the context too.
COPY pyproject.toml README.md requirements.txt requirements-build.txt ./
# Tools have a separate environment, so that the image contains none; pip is the base image's.
RUN python -m venv --without-pip /opt/tools \
    && pip --python /opt/tools/bin/python install --no-cache-dir --no-compile --require-hashes \
       --requirement requirements-build.txt \
    && python -m venv --without-pip /opt/windrow \
    && pip --python /opt/windrow/bin/python install --no-cache-dir --require-hashes \
       --requirement requirements.txt
COPY mkdocs.yml GLOSSARY.md CHANGELOG.md ./
COPY docs docs
COPY core core
COPY calls calls
COPY tables tables
COPY client client
COPY cli cli
COPY spark spark
COPY spark_jobs spark_jobs
COPY service service
# The wheel has the guide, which it builds from `docs`.
RUN /opt/tools/bin/hatchling build --target wheel \
    && pip --python /opt/windrow/bin/python install --no-cache-dir --no-deps --no-index dist/*.whl \
    && pip --python /opt/windrow/bin/python check \
    && /opt/tools/bin/cyclonedx-py environment --no-validate --gather-license-texts \
       --output-reproducible --output-file /opt/windrow/sbom.cdx.json /opt/windrow

FROM ${PYTHON}
LABEL org.opencontainers.image.title="Windrow coordinator" \
      org.opencontainers.image.description="Split-grouping plans for tables of many small files" \
      org.opencontainers.image.licenses="Apache-2.0"
# By number, so that Kubernetes can tell that it is not root; with a name, because libpq needs one.
RUN groupadd --gid 10001 windrow \
    && useradd --uid 10001 --gid windrow --no-create-home --home-dir /var/lib/windrow \
       --shell /usr/sbin/nologin windrow \
    && install --directory --owner=windrow --group=windrow --mode=0750 /var/lib/windrow
COPY --from=build /opt/windrow /opt/windrow
# The root file system may be read-only: the coordinator only writes to /tmp and, with the embedded
# database, to WINDROW_STATE_DIR.
ENV PATH=/opt/windrow/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    WINDROW_HOST=0.0.0.0 \
    WINDROW_PORT=8080 \
    WINDROW_STATE_DIR=/var/lib/windrow
WORKDIR /var/lib/windrow
USER 10001:10001
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 \
    CMD ["python", "-c", "import http.client as h, os, sys; c = h.HTTPConnection('127.0.0.1', int(os.environ['WINDROW_PORT']), timeout=4); c.request('GET', '/health/live'); sys.exit(c.getresponse().status != 200)"]
# Not `windrow serve`, which is for interactive use: this command limits how long stopping takes. The
# command line is available as well: `docker run --entrypoint windrow … db upgrade`.
ENTRYPOINT ["python", "-m", "windrow_service"]
