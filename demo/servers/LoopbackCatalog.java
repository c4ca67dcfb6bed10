package demo;

import java.net.InetSocketAddress;
import java.util.HashMap;
import java.util.Iterator;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.CatalogUtil;
import org.apache.iceberg.catalog.Catalog;
import org.apache.iceberg.rest.RESTCatalogAdapter;
import org.apache.iceberg.rest.RESTCatalogServlet;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.servlet.ServletContextHandler;
import org.eclipse.jetty.servlet.ServletHolder;

/**
 * The Iceberg project's REST catalog for tests, on loopback alone: its own server listens on every
 * interface, and has no setting against that.
 *
 * The catalog's properties are those variables of the environment that begin with CATALOG_; two
 * low lines are a hyphen, one is a dot. Compiled by janino, which knows no generics.
 */
public class LoopbackCatalog {
  public static void main(String[] args) throws Exception {
    Map properties = new HashMap();
    for (Iterator each = System.getenv().entrySet().iterator(); each.hasNext(); ) {
      Map.Entry entry = (Map.Entry) each.next();
      String name = (String) entry.getKey();
      if (name.startsWith("CATALOG_")) {
        String key = name.substring(8).replace("__", "-").replace("_", ".").toLowerCase();
        properties.put(key, entry.getValue());
      }
    }
    Catalog catalog = CatalogUtil.buildIcebergCatalog("backend", properties, new Configuration());
    ServletContextHandler context = new ServletContextHandler(ServletContextHandler.NO_SESSIONS);
    context.addServlet(new ServletHolder(new RESTCatalogServlet(new RESTCatalogAdapter(catalog))), "/*");
    Server server = new Server(new InetSocketAddress("127.0.0.1", Integer.parseInt(args[0])));
    server.setHandler(context);
    server.start();
    server.join();
  }
}
