# The command `dynid` alone. By default it runs the demonstration; for your own files:
#   docker run --rm -v "$PWD:/data" dynid dynid identify arm.urdf run.parquet -o run
FROM python:3.12-slim
COPY . /source
RUN pip install --no-cache-dir "/source[ros]" && rm -rf /source
# kernels are compiled at first use and kept here
ENV NUMBA_CACHE_DIR=/var/cache/dynid
RUN mkdir -p "$NUMBA_CACHE_DIR" /data && chmod 1777 "$NUMBA_CACHE_DIR" /data
WORKDIR /data
CMD ["dynid", "demo", "-o", "/data/demo"]
