# What a facility has besides the pool: `hub`, a JupyterHub with KettleSpawner, and `xcache`, a cache of XRootD.
#
#   docker build -f infra/images/facility.Dockerfile --target hub --build-arg KETTLE=kettle -t kettle-hub infra/images
#   docker build -f infra/images/facility.Dockerfile --target xcache -t kettle-xcache infra/images
#
# Their releases are the site's to choose: HUB names what pip installs, and packages are those of the base.  What `fetch-hub` has put into
# infra/images/hub is taken from there, and what a base has already is not installed again: then the build needs no network.
ARG KETTLE=kettle
ARG BASE=debian:13-slim

# The cache comes first: builders without BuildKit make all that stands before what is asked for.
FROM ${BASE} AS xcache

# hadolint ignore=DL3008
RUN if ! command -v xrootd >/dev/null; then \
        apt-get update && apt-get install --yes --no-install-recommends xrootd-server xrootd-server-plugins \
        && rm -rf /var/lib/apt/lists/*; \
    fi \
    && mkdir -m 0700 /var/spool/xcache && chown 9618:9618 /var/spool/xcache
USER 9618:9618
LABEL org.opencontainers.image.title="kettle-xcache" \
      org.opencontainers.image.description="A cache of XRootD for the machines of a site"
HEALTHCHECK NONE
ENTRYPOINT ["xrootd", "-c", "/etc/xrootd/xcache.cfg"]


# hadolint ignore=DL3006
FROM ${KETTLE} AS hub-build

ARG HUB="jupyterhub>=5 oauthenticator>=17"
# Nothing runs here but what builds.
# hadolint ignore=DL3002
USER 0:0
COPY hub /opt/hub
WORKDIR /opt/hub
# What installs stays here: the hub has neither pip nor npm.  ${HUB} and ${from} are words, or none.
# hadolint ignore=DL3008,DL3016,SC2086
RUN if [ -d wheels ]; then from="--no-index --find-links wheels"; else \
        apt-get update && apt-get install --yes --no-install-recommends nodejs npm python3-pip-whl \
        && npm install --no-audit --no-fund --prefix . configurable-http-proxy@4 \
        && mkdir wheels && cp /usr/share/python-wheels/pip-*.whl wheels; \
    fi \
    && set -- wheels/pip-*.whl \
    && /opt/kettle/bin/python "$1/pip" --no-cache-dir install ${from} ${HUB} \
    && chmod -R go-w /opt/kettle node_modules


# hadolint ignore=DL3006
FROM ${KETTLE} AS hub

USER 0:0
# hadolint ignore=DL3008
RUN if ! command -v node >/dev/null; then \
        apt-get update && apt-get install --yes --no-install-recommends nodejs && rm -rf /var/lib/apt/lists/*; \
    fi \
    && mkdir -m 0700 /srv/hub && chown 9618:9618 /srv/hub
COPY --from=hub-build /opt/kettle /opt/kettle
COPY --from=hub-build /opt/hub/node_modules /opt/proxy/node_modules
COPY jupyterhub_config.py /etc/jupyterhub/jupyterhub_config.py
ENV PATH=/opt/proxy/node_modules/.bin:$PATH
USER 9618:9618
WORKDIR /srv/hub
LABEL org.opencontainers.image.title="kettle-hub" \
      org.opencontainers.image.description="A JupyterHub whose servers are jobs of a Kettle pool"
HEALTHCHECK NONE
ENTRYPOINT ["jupyterhub", "--config", "/etc/jupyterhub/jupyterhub_config.py"]
