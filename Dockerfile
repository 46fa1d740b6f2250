# The page in a container:
#   docker build --tag odejet .
#   docker run --rm --init -p 127.0.0.1:8000:8001 -v odejet-studies:/studies odejet
# then open the address that it prints.  Other commands work too: docker run --rm odejet odejet --version
FROM python:3.13-slim

RUN apt-get update \
 && apt-get install --yes --no-install-recommends socat \
 && rm -rf /var/lib/apt/lists/*

COPY . /source
RUN python -m pip install --no-cache-dir "/source[all]" && rm -rf /source

RUN useradd --create-home odejet && mkdir /studies && chown odejet /studies
USER odejet
VOLUME /studies

# Kernels are compiled once, here, and not at the first fit of every container.
RUN python -c "import odejet as oj; oj.fit(oj.Model({'x': '-k*x'}, {'y': 'x'}), oj.Data([0, 1, 2, 3, 4], {'y': [4.0, 2.4, 1.5, 0.9, 0.5]}))"

# The page listens on the container's loopback address alone, which -p cannot reach; socat leads there.
EXPOSE 8001
CMD ["sh", "-c", "socat TCP-LISTEN:8001,fork,reuseaddr TCP:127.0.0.1:8000 & exec odejet app /studies --port 8000 --no-browser"]
